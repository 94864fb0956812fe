/* events.c - see events.h. Field numbers are those of TensorFlow's event.proto, summary.proto and
 * tensor.proto; defaults are left out, as proto3 wants it.
 */
#include "core/train/summary/events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/base/log.h"
#include "core/graph/op.h"
#include "core/train/summary/event_file.h"

enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_GRAPH_DEF = 4,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
};
enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
};
enum {
    HISTOGRAM_MINIMUM = 1,
    HISTOGRAM_MAXIMUM = 2,
    HISTOGRAM_COUNT = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SUM_SQUARES = 5,
    HISTOGRAM_PAIR_LIMITS = 6,
    HISTOGRAM_PAIR_COUNTS = 7,
};
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_STRINGS = 8 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { METADATA_PLUGIN = 1 };
enum { PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { PR_CURVES_THRESHOLDS = 2 };
enum { SESSION_STATUS = 1, SESSION_PATH = 2 };

enum {
    DTYPE_FLOAT = 1,
    DTYPE_STRING = 7,
    EVENT_BYTES_MAX = 1 << 28, /* readers refuse messages of 2^31 bytes */
    PLUGIN_TAGS_MAX = 256, /* beyond these, metadata are written each time, which does no harm */
};

static const char FILE_VERSION[] = "brain.Event:2";
static const double WALL_MAX_S = 1e12; /* year 33658 */

struct events {
    struct event_file file;
    struct buffer event;                /* being put together */
    bool is_open;                       /* between begin_step and end_step */
    size_t summary;                     /* where the open step's summary begins in it */
    int value_count;                    /* of the open step */
    char *plugin_tags[PLUGIN_TAGS_MAX]; /* those whose metadata are in the file already */
    int plugin_tag_count;
    double pair_limits[HISTOGRAM_BUCKETS + 1], pair_counts[HISTOGRAM_BUCKETS + 1];
};

/* One event at a time: another one in between would lose what the step has gathered. */
static void begin_event(struct events *events, double wall_s, uint64_t step)
{
    assert(!events->is_open);
    buffer_clear(&events->event);
    proto_double(&events->event, EVENT_WALL_TIME, wall_s);
    if (step) proto_varint(&events->event, EVENT_STEP, step);
}

static void forget_plugin_tags(struct events *events)
{
    for (int i = 0; i < events->plugin_tag_count; i++) free(events->plugin_tags[i]);
    events->plugin_tag_count = 0;
}

/* If events may have been lost, so may the metadata of plugins: they are written again. */
static err checked(struct events *events, err e)
{
    if (e) forget_plugin_tags(events);
    return e;
}

/* Whatever failed while the event was put together is noticed here. */
static err end_event(struct events *events)
{
    const struct buffer *event = &events->event;
    if (event->is_short || event->used > EVENT_BYTES_MAX)
        return checked(events, fail(ERR_MEMORY, "%s: an event is too large, or no memory for it",
                                    events->file.path));
    return checked(events, event_file_append(&events->file, event->at, event->used));
}

err events_flush(struct events *events)
{
    return checked(events, event_file_flush(&events->file));
}

/* The first record, on its own: readers recognise the file by it. */
static err write_version(struct events *events, int64_t seconds)
{
    begin_event(events, (double)seconds, 0);
    proto_string(&events->event, EVENT_FILE_VERSION, FILE_VERSION);
    TRY(end_event(events));
    return events->file.name ? OK : events_flush(events); /* a server may take long to answer */
}

/* A file that cannot take its first record is removed: readers would wait for it for ever. */
err events_own_folder(const char *directory)
{
    if (path_is_url(directory) || own_folder(directory) || errno == ENOENT) return OK;
    return fail(ERR_IO, "%s: the folder cannot be made: %s", directory, strerror(errno));
}

err events_open(const char *directory, double wall_s, const char *suffix, struct events **ret)
{
    struct events *events = calloc(1, sizeof *events);
    if (!events) return fail(ERR_MEMORY, "%s: no memory", directory);

    int64_t seconds = wall_s >= 0 && wall_s < WALL_MAX_S ? (int64_t)wall_s : 0;
    err e = event_file_create(directory, seconds, suffix, &events->file, &seconds);
    if (e) {
        free(events);
        return e;
    }
    e = write_version(events, seconds);
    if (e) {
        event_file_remove(&events->file);
        buffer_drop(&events->event);
        free(events);
        return e;
    }
    *ret = events;
    return OK;
}

err events_write_beside(struct events *events)
{
    return event_file_write_beside(&events->file);
}

void events_close(struct events *events)
{
    if (!events) return;
    const bool was_beside = events->file.thread;
    event_file_write_here(&events->file);
    if (events_flush(events) && was_beside) log_line(LOG_WARNING, "%s", error_text());
    event_file_close(&events->file);
    forget_plugin_tags(events);
    buffer_drop(&events->event);
    free(events);
}

void events_begin_step(struct events *events, double wall_s, uint64_t step)
{
    begin_event(events, wall_s, step);
    events->summary = proto_open(&events->event, EVENT_SUMMARY);
    events->value_count = 0;
    events->is_open = true;
}

err events_end_step(struct events *events)
{
    assert(events->is_open);
    events->is_open = false;
    if (events->value_count == 0) return OK;
    proto_close(&events->event, events->summary);
    return end_event(events);
}

/* Makes a tag as TensorFlow does: no slash in front, one underscore for each character (not byte)
 * other than [-/A-Za-z0-9_.]. */
static void add_tag(struct buffer *event, const char *tag)
{
    static const char allowed[] =
        "-/_.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t begin = proto_open(event, VALUE_TAG);
    for (const char *c = tag + strspn(tag, "/"); *c; c++) {
        const bool continues = ((unsigned char)*c & 0xc0) == 0x80;
        if (!continues) buffer_put(event, strchr(allowed, *c) ? c : "_", 1);
    }
    proto_close(event, begin);
}

/* Returns where the value begins, for proto_close. */
static size_t begin_value(struct events *events, const char *tag)
{
    assert(events->is_open);
    const size_t value = proto_open(&events->event, SUMMARY_VALUE);
    add_tag(&events->event, tag);
    events->value_count++;
    return value;
}

/* TensorBoard shows NaN and infinities as such; a number too large for a float becomes infinite. */
void events_scalar(struct events *events, const char *tag, double value)
{
    if (metric_undefined_text(value)) return;
    const size_t begin = begin_value(events, tag);
    proto_float(&events->event, VALUE_SIMPLE, (float)value);
    proto_close(&events->event, begin);
}

static void add_unless_zero(struct buffer *event, int field, double value)
{
    if (value != 0) proto_double(event, field, value);
}

void events_histogram(struct events *events, const char *tag, const struct histogram *h)
{
    struct buffer *event = &events->event;
    const size_t value = begin_value(events, tag);
    const size_t message = proto_open(event, VALUE_HISTOGRAM);
    add_unless_zero(event, HISTOGRAM_MINIMUM, h->minimum);
    add_unless_zero(event, HISTOGRAM_MAXIMUM, h->maximum);
    add_unless_zero(event, HISTOGRAM_COUNT, h->count);
    add_unless_zero(event, HISTOGRAM_SUM, h->sum);
    add_unless_zero(event, HISTOGRAM_SUM_SQUARES, h->sum_squares);
    const int pairs = histogram_pairs(h, events->pair_limits, events->pair_counts);
    proto_packed_doubles(event, HISTOGRAM_PAIR_LIMITS, events->pair_limits, pairs);
    proto_packed_doubles(event, HISTOGRAM_PAIR_COUNTS, events->pair_counts, pairs);
    proto_close(event, message);
    proto_close(event, value);
}

/* Whether this is the tag's first value for a plugin, which is noted. */
static bool is_first_of_tag(struct events *events, const char *tag)
{
    for (int i = 0; i < events->plugin_tag_count; i++)
        if (strcmp(events->plugin_tags[i], tag) == 0) return false;
    char *copy = events->plugin_tag_count < PLUGIN_TAGS_MAX ? strdup(tag) : NULL;
    if (copy) events->plugin_tags[events->plugin_tag_count++] = copy;
    return true;
}

/* content: NULL: empty */
static void add_plugin(struct buffer *event, const char *name, const struct buffer *content)
{
    const size_t metadata = proto_open(event, VALUE_METADATA);
    const size_t plugin = proto_open(event, METADATA_PLUGIN);
    proto_string(event, PLUGIN_NAME, name);
    if (content) proto_bytes(event, PLUGIN_CONTENT, content->at, content->used);
    proto_close(event, plugin);
    proto_close(event, metadata);
}

/* A scalar of strings; the plugin's name puts it on the page of texts. */
void events_text(struct events *events, const char *tag, const char *markdown)
{
    struct buffer *event = &events->event;
    const size_t value = begin_value(events, tag);
    const size_t tensor = proto_open(event, VALUE_TENSOR);
    proto_varint(event, TENSOR_DTYPE, DTYPE_STRING);
    proto_bytes(event, TENSOR_SHAPE, NULL, 0);
    proto_string(event, TENSOR_STRINGS, markdown);
    proto_close(event, tensor);
    if (is_first_of_tag(events, tag)) add_plugin(event, "text", NULL);
    proto_close(event, value);
}

static void add_dimension(struct buffer *event, int64_t size)
{
    const size_t dimension = proto_open(event, SHAPE_DIM);
    proto_varint(event, DIM_SIZE, (uint64_t)size);
    proto_close(event, dimension);
}

void events_pr_curve(struct events *events, const char *tag, const float *values, int thresholds)
{
    struct buffer *event = &events->event, content = {0};
    const size_t value = begin_value(events, tag);
    const size_t tensor = proto_open(event, VALUE_TENSOR);
    proto_varint(event, TENSOR_DTYPE, DTYPE_FLOAT);
    const size_t shape = proto_open(event, TENSOR_SHAPE);
    add_dimension(event, PR_ROWS);
    add_dimension(event, thresholds);
    proto_close(event, shape);
    proto_bytes(event, TENSOR_CONTENT, values, PR_ROWS * (size_t)thresholds * sizeof *values);
    proto_close(event, tensor);
    proto_varint(&content, PR_CURVES_THRESHOLDS, (uint64_t)thresholds);
    if (is_first_of_tag(events, tag)) add_plugin(event, "pr_curves", &content);
    event->is_short |= content.is_short;
    buffer_drop(&content);
    proto_close(event, value);
}

/* In an event the graph is bytes, not a message: readers parse them separately. */
err events_graph(struct events *events, double wall_s, const struct graph_def *def)
{
    size_t bytes;
    void *message = graph_def_serialize(def, &bytes);
    if (!message) return fail(ERR_MEMORY, "%s: no memory for the graph", events->file.path);
    begin_event(events, wall_s, 0);
    proto_bytes(&events->event, EVENT_GRAPH_DEF, message, bytes);
    free(message);
    return end_event(events);
}

err events_session(struct events *events, double wall_s, uint64_t step, enum session_status status,
                   const char *path)
{
    begin_event(events, wall_s, step);
    const size_t begin = proto_open(&events->event, EVENT_SESSION_LOG);
    proto_varint(&events->event, SESSION_STATUS, status);
    if (path) proto_string(&events->event, SESSION_PATH, path);
    proto_close(&events->event, begin);
    return end_event(events);
}
