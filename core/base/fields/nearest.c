/* nearest.c - which name did they mean?
 *
 * Edit distance with exchanges of neighbours (optimal string alignment). Letters differ by case,
 * and '-' from '_', at no cost: such names are as near as can be.
 */
#include <ctype.h>
#include <string.h>

#include "core/base/fields/fields.h"

enum { WORD_MAX = 64, EDITS_MAX = 3 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    if (a == '-') a = '_';
    if (b == '-') b = '_';
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Both at most WORD_MAX bytes. Three rows of the table are enough: a[..i] against all of b. */
static int distance(const char *a, const char *b)
{
    const int width = (int)strlen(b);
    int rows[3][WORD_MAX + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= width; j++) row[j] = j;

    for (int i = 1; a[i - 1]; i++) {
        int *const oldest = before;
        before = above, above = row, row = oldest;
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int replaced = above[j - 1] + !same(a[i - 1], b[j - 1]);
            row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
            bool exchanged = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
            if (exchanged) row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[width];
}

const char *nearest_name(const char *word, const char *const *names, int count)
{
    const size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX) return NULL;

    /* A third of the word may be wrong; of "lr" nothing is near that is not one letter away. */
    int allowed = least((int)(length + 2) / 3, EDITS_MAX);
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_MAX) continue;
        int edits = distance(word, names[i]);
        if (edits > allowed || edits >= (int)strlen(names[i])) continue;
        nearest = names[i];
        allowed = edits - 1; /* the first of equals stays */
    }
    return nearest;
}
