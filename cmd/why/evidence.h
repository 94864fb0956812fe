/* evidence.h - reads the files of a run: results, metrics, logs, folders of checkpoints. */
#ifndef CMD_WHY_EVIDENCE_H
#define CMD_WHY_EVIDENCE_H

#include "cmd/status/status.h"
#include "core/base/arena.h"

enum line_kind {
#define LINE(ID, ...) LINE_##ID,
#include "cmd/why/lines.def"
#undef LINE
    LINES
};

struct line_row {
    const char *words;
    enum finding_level level;
    const char *meaning;
};
extern const struct line_row line_rows[LINES];

enum { EVIDENCE_TEXT_MAX = 160, EVIDENCE_WHERE_MAX = 96 };

struct quote {
    char text[EVIDENCE_TEXT_MAX];   /* printable */
    char where[EVIDENCE_WHERE_MAX]; /* "worker.log, line 12" */
};

/* --result */
struct result_seen {
    bool is_there;
    struct quote verdict;
    int code;
    double step, trained, seconds, wall_seconds, rows_twice, rows_lost;
    struct job_status tasks;
};

/* --metrics_file */
struct metrics_seen {
    int lines, begun_again; /* begun_again: how often steps went back */
    double first_step, last_step, steps_again;
    double first_loss, best_loss, last_loss;
    double seconds;          /* of all lines */
    double gap_s, gap_steps; /* the longest time between two lines, and its steps */
    struct quote gap;
    char path[EVIDENCE_WHERE_MAX];
};

/* Of all logs */
struct logs_seen {
    int files, counts[LINES];
    struct quote first[LINES]; /* of WAITED the one with the longest wait */
    double waited_s;
    struct quote error; /* the first error line, of the file read first */
    int errors, warnings;
    struct quote cut; /* the last line of a file without a line of the end */
    bool has_end;     /* one of them says how the job ended, */
    bool has_failed;  /* with an error, which all tasks share */
};

struct checkpoints_seen {
    bool is_there;
    int count;
    double step;          /* of the newest that can be opened; -1: none */
    struct quote trouble; /* text "": none */
};

struct evidence {
    struct result_seen result;
    struct metrics_seen metrics;
    struct logs_seen logs;
    struct checkpoints_seen checkpoints;
    struct quote unread; /* how far a file with too long lines was read; where "": none */
};

/* Recognizes a file by its content; a folder may contain any of them. ERR_IO; ERR_INPUT: no file of
 * a run */
err evidence_read(const char *path, struct evidence *);
void evidence_free(struct evidence *);

#endif
