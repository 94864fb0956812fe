/* greeting.c - see greeting.h. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/json_foreign.h"
#include "core/base/random.h"
#include "core/cluster/description/ports.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/role/verdict.h"

const char *greeting_boot_id(void)
{
    static _Thread_local char id[BOOT_ID_MAX]; /* a chief that feeds workers greets in two threads
                                                */
    if (id[0]) return id;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f) return "";
    if (fgets(id, sizeof id, f)) id[strcspn(id, "\n")] = '\0';
    fclose(f);
    return id;
}

uint64_t greeting_draw_incarnation(void)
{
    uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) drawn = random_mix(clock_ns());
    return drawn ? drawn : 1;
}

/* "": with a coordinator, as addresses may change, and if a port is open, which others may know. */
static void digest_hosts(const struct cluster_spec *cluster, enum job job, char ret[17])
{
    const struct strings *hosts = &cluster->hosts[job];
    uint64_t key = cluster->name ? random_key(0, cluster->name) : 0;
    ret[0] = '\0';
    for (int i = 0; !cluster->name && i < cluster_room(cluster, job); i++) {
        if (port_is_open(hosts->at[i])) return;
        key = random_key(key, hosts->at[i]);
    }
    snprintf(ret, 17, "%016" PRIx64, key);
}

/* The hosts, so that a difference can be named, or their number and a digest. */
static json_t *hosts_json(const struct cluster_spec *cluster, enum job job, bool is_whole)
{
    const struct strings *hosts = &cluster->hosts[job];
    const int count = cluster_room(cluster, job);
    if (!is_whole || cluster->name) {
        char digest[17];
        digest_hosts(cluster, job, digest);
        return json_pack("{si ss}", "count", count, "digest", digest);
    }
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, json_string(hosts->at[i]));
    return list;
}

static json_t *membership_json(const struct cluster_spec *cluster)
{
    const struct membership r = cluster_membership(cluster);
    return json_pack("{sI si si}", "resizes", (json_int_t)r.resizes, "ps", r.count[JOB_PS],
                     "workers", r.count[JOB_WORKER]);
}

/* Only of a worker that reads its own data. */
static json_t *data_json(const struct data_said *data)
{
    char digest[20], spec[20];
    snprintf(digest, sizeof digest, "%016" PRIx64, data->digest);
    snprintf(spec, sizeof spec, "%016" PRIx64, data->spec);
    if (!data->digest) return NULL;
    return json_pack("{sI ss ss}", "rows", (json_int_t)data->rows, "digest", digest, "spec", spec);
}

static void add_offers(json_t *said, const struct offers *offers)
{
    for (int i = 0; offers && i < TRANSPORT_COUNT; i++)
        if (offers->at[i][0])
            json_object_set_new(said, transports[i]->name, json_string(offers->at[i]));
}

static char *greeting_text(const struct greeter *me, const struct offers *offers, bool is_whole)
{
    const struct cluster_spec *cluster = me->cluster;
    char incarnation[20];
    snprintf(incarnation, sizeof incarnation, "%016" PRIx64, me->incarnation);
    json_t *said = json_pack("{si ss si ss so so so ss* ss so*}", "protocol", PROTOCOL_VERSION,
                             "job", job_name(me->job), "task", me->index, "incarnation",
                             incarnation, "ps_hosts", hosts_json(cluster, JOB_PS, is_whole),
                             "worker_hosts", hosts_json(cluster, JOB_WORKER, is_whole),
                             "membership", membership_json(cluster), "spec", me->fingerprint,
                             "boot_id", greeting_boot_id(), "data", data_json(&me->data));
    add_offers(said, offers);
    char *text = said ? json_dumps(said, JSON_COMPACT) : NULL;
    json_decref(said);
    return text;
}

err greeting_send(const struct greeter *me, struct link *link, enum message_type type,
                  const struct offers *offers)
{
    char *text = greeting_text(me, offers, true);
    if (text && strlen(text) > TASK_GREETING_BYTES_MAX) {
        free(text);
        text = greeting_text(me, offers, false);
    }
    if (!text) return fail(ERR_MEMORY, "no memory for a greeting");
    const struct message m = {
        .type = type,
        .task = (uint32_t)me->index,
        .job = me->job,
        .body = text,
        .body_bytes = (uint32_t)strlen(text),
    };
    err e = link_send(link, &m);
    free(text);
    return e;
}

struct greeter greeter_of(const struct task *t)
{
    return (struct greeter){
        .cluster = t->options.cluster,
        .fingerprint = t->options.fingerprint,
        .job = t->job,
        .peer_job = t->peer_job,
        .index = t->index,
        .peer_count = t->peer_count,
        .incarnation = t->incarnation,
        .data = t->data,
    };
}

err greeting_check_right(const struct link *link, enum right least)
{
    const char *wanted = least == RIGHT_TO_TAKE_PART
                             ? "of a task (URI:dtrain:task)"
                             : "of a visitor (URI:dtrain:reader or :writer)";
    if (link_right(link) >= least) return OK;
    return fail(ERR_INPUT, "its certificate is not that %s", wanted);
}

static err compare_protocols(int theirs)
{
    if (theirs == PROTOCOL_VERSION) return OK;
    return fail(ERR_INPUT, "protocol version differs: the peer has %d, this task %d", theirs,
                PROTOCOL_VERSION);
}

static size_t count_hosts(const json_t *hosts)
{
    if (json_is_array(hosts)) return json_array_size(hosts);
    const json_int_t count = json_integer_value(json_object_get(hosts, "count"));
    return count > 0 && count <= INT_MAX ? (size_t)count : 0;
}

static err compare_digests(const struct cluster_spec *cluster, enum job job, json_t *theirs,
                           const char *name)
{
    char digest[17];
    digest_hosts(cluster, job, digest);
    const char *other = json_string_value(json_object_get(theirs, "digest"));
    if (other && (!*other || !*digest || strcmp(other, digest) == 0)) return OK;
    return fail(ERR_INPUT, "%s_hosts differ: %s has %d others, or in another order", job_name(job),
                name, cluster_room(cluster, job));
}

static err compare_hosts(const struct cluster_spec *cluster, enum job job, json_t *theirs,
                         const char *name)
{
    const struct strings *mine = &cluster->hosts[job];
    const int room = cluster_room(cluster, job);
    if ((size_t)room != count_hosts(theirs))
        return fail(ERR_INPUT, "%s_hosts differ: %s has %zu, this task has %d", job_name(job), name,
                    count_hosts(theirs), room);
    if (json_is_object(theirs)) return compare_digests(cluster, job, theirs, name);
    for (int i = 0; i < room; i++) {
        const char *host = json_string_value(json_array_get(theirs, (size_t)i));
        if (!host || !address_agrees(mine->at[i], host))
            return fail(ERR_INPUT, "%s_hosts[%d] differs: %s has %.100s, this task has %.100s",
                        job_name(job), i, name, host ? host : "none", mine->at[i]);
    }
    return OK;
}

err greeting_compare_specs(const char *name, const char *fingerprint, const char *other_name,
                           const char *other_fingerprint)
{
    if (!fingerprint[0] || !other_fingerprint[0] || strcmp(fingerprint, other_fingerprint) == 0)
        return OK;
    return fail(
        ERR_INPUT,
        "the spec differs: %s has fingerprint %s, %s has %s; all tasks want the same spec and "
        "the same --set",
        name, fingerprint, other_name, other_fingerprint);
}

err greeting_compare_data(const char *name, const struct data_said *data, const char *other_name,
                          const struct data_said *other)
{
    if (!data->digest || !other->digest || data->digest == other->digest) return OK;
    if (data->rows != other->rows)
        return fail(ERR_INPUT,
                    "data.train differs: %s has %llu rows, %s has %llu; all workers want the same "
                    "files, whole",
                    name, (unsigned long long)data->rows, other_name,
                    (unsigned long long)other->rows);
    return fail(ERR_INPUT,
                "data.train differs: %s and %s have %llu rows each, but not the same ones, or in "
                "another order; all workers want the same files",
                name, other_name, (unsigned long long)data->rows);
}

static void read_data(json_t *json, struct data_said *ret)
{
    json_int_t rows = 0;
    const char *digest = "0", *spec = "0";
    json_unpack(json, "{s?{s?I s?s s?s}}", "data", "rows", &rows, "digest", &digest, "spec", &spec);
    *ret = (struct data_said){(uint64_t)rows, strtoull(digest, NULL, 16), strtoull(spec, NULL, 16)};
}

static err read_offers(json_t *json, struct offers *ret)
{
    for (int i = 0; i < TRANSPORT_COUNT; i++) {
        const json_t *name = json_object_get(json, transports[i]->name);
        if (transports[i]->reach != TRANSPORT_WITHIN_HOST || !name) continue;
        if (!json_is_string(name))
            return fail(ERR_PROTOCOL, "a greeting whose \"%s\" is no name", transports[i]->name);
        snprintf(ret->at[i], sizeof ret->at[i], "%s", json_string_value(name));
    }
    return OK;
}

/* The text members, cut to their limits. */
static err read_texts(json_t *json, struct greeting *ret)
{
    const char *incarnation = NULL, *fingerprint = "", *boot_id = "";
    if (json_unpack(json, "{ss s?s s?s}", "incarnation", &incarnation, "spec", &fingerprint,
                    "boot_id", &boot_id) != 0)
        return fail(ERR_PROTOCOL, "a greeting without an incarnation");
    ret->incarnation = strtoull(incarnation, NULL, 16);
    snprintf(ret->fingerprint, sizeof ret->fingerprint, "%s", fingerprint);
    snprintf(ret->boot_id, sizeof ret->boot_id, "%s", boot_id);
    read_data(json, &ret->data);
    return read_offers(json, &ret->offers);
}

/* Without one all listed tasks take part. */
static err read_membership(json_t *json, json_t *ps_hosts, json_t *worker_hosts,
                           struct membership *ret)
{
    json_int_t resizes = 0;
    int ps = (int)count_hosts(ps_hosts), workers = (int)count_hosts(worker_hosts);
    json_unpack(json, "{s?{s?I s?i s?i}}", "membership", "resizes", &resizes, "ps", &ps, "workers",
                &workers);
    if (resizes < 0 || ps < 1 || workers < 1) return fail(ERR_PROTOCOL, "an invalid membership");
    *ret = (struct membership){(uint64_t)resizes, {ps, workers}};
    return OK;
}

/* After the same number of resizes memberships must be equal. */
static err compare_memberships(const struct greeter *me, const char *name,
                               const struct membership *theirs)
{
    char said[MEMBERSHIP_TEXT_MAX], here[MEMBERSHIP_TEXT_MAX];
    const struct membership mine = cluster_membership(me->cluster);
    if (mine.resizes != theirs->resizes || membership_is_same(&mine, theirs)) return OK;
    return fail(ERR_INPUT, "--ps or --workers differ: %s has %s, this task has %s", name,
                membership_text(theirs, said), membership_text(&mine, here));
}

static err read_json(const struct greeter *me, json_t *json, struct greeting *ret)
{
    int protocol, index;
    const char *job;
    json_t *ps_hosts, *worker_hosts;
    if (json_unpack(json, "{si ss si so so}", "protocol", &protocol, "job", &job, "task", &index,
                    "ps_hosts", &ps_hosts, "worker_hosts", &worker_hosts) != 0)
        return fail(ERR_PROTOCOL, "an invalid greeting");
    TRY(compare_protocols(protocol));
    const struct cluster_spec *cluster = me->cluster;
    if (strcmp(job, job_name(me->peer_job)) != 0 || index < 0 ||
        index >= cluster_room(cluster, me->peer_job))
        return fail(
            ERR_INPUT,
            "%.20s/%d is no %s of this cluster, which has %d; are the lists of hosts the same?",
            job, index, job_name(me->peer_job), cluster_room(cluster, me->peer_job));
    ret->job = me->peer_job;
    ret->task = index;
    char name[TASK_NAME_MAX];
    task_name(ret->job, index, name);
    TRY(compare_hosts(cluster, JOB_PS, ps_hosts, name));
    TRY(compare_hosts(cluster, JOB_WORKER, worker_hosts, name));
    TRY(read_membership(json, ps_hosts, worker_hosts, &ret->membership));
    if (ret->membership.count[JOB_PS] > cluster_room(cluster, JOB_PS) ||
        ret->membership.count[JOB_WORKER] > cluster_room(cluster, JOB_WORKER))
        return fail(ERR_PROTOCOL, "%s is of a membership that has no room", name);
    TRY(compare_memberships(me, name, &ret->membership));
    if (ret->membership.resizes == cluster->resizes && index >= me->peer_count)
        return fail(ERR_INPUT, "%s does not take part: there are %d", name, me->peer_count);
    return read_texts(json, ret);
}

static err load(const struct message *m, json_t **ret)
{
    if (!m->body || m->body_bytes > TASK_GREETING_BYTES_MAX)
        return fail(ERR_PROTOCOL, "a greeting of %u bytes", m->body_bytes);
    if (!json_read_foreign(m->body, m->body_bytes, 0, ret)) return OK;
    return fail_prefix(ERR_PROTOCOL, "a greeting that is not JSON");
}

err greeting_read(const struct greeter *me, const struct message *m, struct greeting *ret)
{
    *ret = (struct greeting){0};
    json_t *json;
    TRY(load(m, &json));
    err e = read_json(me, json, ret);
    json_decref(json);
    return e;
}

/* ---- visitors ---- */

static const char visitor_job[] = "visitor";

err greeting_send_visitor(struct link *link)
{
    char text[64];
    int length = snprintf(text, sizeof text, "{\"protocol\": %d, \"job\": \"%s\"}",
                          PROTOCOL_VERSION, visitor_job);
    const struct message m = {
        .type = MESSAGE_HELLO,
        .job = JOB_COUNT, /* not a task's job */
        .body = text,
        .body_bytes = (uint32_t)length,
    };
    return link_send(link, &m);
}

err greeting_read_visitor(const struct message *m, bool *ret_is_visitor)
{
    json_t *json;
    int protocol = 0;
    const char *job = "";
    *ret_is_visitor = false;
    if (load(m, &json)) return OK;
    json_unpack(json, "{s?i s?s}", "protocol", &protocol, "job", &job);
    *ret_is_visitor = strcmp(job, visitor_job) == 0;
    json_decref(json);
    return *ret_is_visitor ? compare_protocols(protocol) : OK;
}

err greeting_read_welcome(const struct message *m, struct welcome *ret)
{
    json_t *json, *ps_hosts = NULL;
    int protocol, ps = 0;
    const char *job;
    TRY(load(m, &json));
    int failed = json_unpack(json, "{si ss si so}", "protocol", &protocol, "job", &job, "task", &ps,
                             "ps_hosts", &ps_hosts);
    err e = OK;
    if (failed)
        e = fail(ERR_PROTOCOL, "an invalid greeting");
    else if (strcmp(job, job_name(JOB_PS)) != 0)
        e = fail(ERR_INPUT, "it is no ps");
    else
        e = compare_protocols(protocol);
    *ret = (struct welcome){.ps = ps, .room = (int)count_hosts(ps_hosts)};
    if (!e)
        e = read_membership(json, ps_hosts, json_object_get(json, "worker_hosts"),
                            &ret->membership);
    json_decref(json);
    return e;
}

struct message greeting_refusal(const struct greeter *me, int exit_code)
{
    return (struct message){
        .type = MESSAGE_REFUSED,
        .refused.exit_code = (uint32_t)exit_code,
        .job = me->job,
        .task = (uint32_t)me->index,
        .body = error_text(),
        .body_bytes = (uint32_t)strlen(error_text()),
    };
}

void greeting_refuse(const struct greeter *me, struct link *link, struct log_limit *limit, err why)
{
    log_limited(limit, clock_ms(), LOG_WARNING, "refused %s: %s", link_peer_name(link),
                error_text());
    const struct message m = greeting_refusal(me, exit_code_of(why));
    if (link_send(link, &m)) log_line(LOG_DEBUG, "%s", error_text()); /* it has gone */
}
