/* SPDX-License-Identifier: MIT */
#include "transcripts.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>

#define FOLDER "tests/unit/node/transcripts/"

enum { COLUMNS_MAX = 12 };

static struct take *takes;
static int takes_count;

bool transcripts_begins(const char *line, const char *word)
{
    size_t len = strlen(word);
    line += strspn(line, " ");
    return strncmp(line, word, len) == 0 &&
           (line[len] == ' ' || line[len] == '\0');
}

bool transcripts_is_skipped(const char *line)
{
    const char *at = line + strspn(line, " ");
    return *at == '\0' || *at == '#' || transcripts_begins(line, "each") ||
           transcripts_begins(line, "row") ||
           transcripts_begins(line, "define");
}

const struct take *transcripts_take(int number)
{
    return &takes[number];
}

static char *read_all(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (in == NULL || getdelim(&text, &size, '\0', in) < 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        abort();
    }
    (void)fclose(in);
    return text;
}

/* The array has room for one more. */
static void *grow(void *array, int count, size_t size)
{
    void *more = realloc(array, (size_t)(count + 1) * size);
    if (more == NULL)
        abort();
    return more;
}

/* Joins a line that ends in a backslash with the next one. */
static void split_lines(struct transcript *file, char *text)
{
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        while (rest != NULL && rest > line + 1 && rest[-2] == '\\') {
            rest[-2] = rest[-1] = ' ';
            (void)strsep(&rest, "\n");
        }
        file->lines = grow(file->lines, file->count, sizeof(char *));
        file->lines[file->count++] = line;
    }
}

static void add_take(const struct take *take)
{
    takes = grow(takes, takes_count, sizeof *takes);
    takes[takes_count++] = *take;
}

static void add_takes(const struct take *take, bool is_real)
{
    struct take it = *take;
    it.stage = &stage_real;
    add_take(&it);
    it.stage = &stage_sim;
    if (!is_real)
        add_take(&it);
}

/* The test whose head is this line; with its table, a take for each row. */
static void add_test(struct transcript *file, int head, bool is_admitted)
{
    const char *at = file->lines[head] + strcspn(file->lines[head], " ");
    at += strspn(at, " ");
    const char *rest = at + strcspn(at, " ");
    const char *name = strndup(at, (size_t)(rest - at));
    bool is_real = strstr(rest, "real") != NULL;
    struct take take = {.file = file, .name = name, .line = head + 1};
    if (strstr(rest, "bare") != NULL)
        is_admitted = false;
    take.is_admitted = is_admitted || strstr(rest, "admitted") != NULL;
    int first = takes_count;
    for (int i = head + 1; i < file->count; i++) {
        const char *line = file->lines[i];
        if (transcripts_begins(line, "test"))
            break;
        if (transcripts_begins(line, "each"))
            take.columns = i;
        if (!transcripts_begins(line, "row"))
            continue;
        take.row = i;
        add_takes(&take, is_real);
    }
    if (take.columns == 0)
        add_takes(&take, is_real);
    TTest *test = malloc(sizeof *test);
    *test = (TTest){name, transcripts_play, file->path, head + 1};
    takes[first].test = test;
    suite_add(&file->suite, test, first, takes_count);
}

static void add_file(const char *name)
{
    struct transcript *file = calloc(1, sizeof *file);
    char path[300];
    bool is_admitted = false;
    snprintf(path, sizeof path, FOLDER "%s", name);
    file->path = strdup(path);
    split_lines(file, read_all(path));
    char *suite = strndup(name, strlen(name) - strlen(".txt"));
    file->suite = (struct suite){.name = suite, .file = file->path};
    file->group = (struct group){.name = suite, .timeout_s = 60};
    suite_begin(&file->suite);
    suite_begin_group(&file->suite, &file->group);
    for (int i = 0; i < file->count; i++) {
        if (transcripts_begins(file->lines[i], "admitted"))
            is_admitted = true;
        if (!transcripts_begins(file->lines[i], "test"))
            continue;
        add_test(file, i, is_admitted);
    }
}

static __attribute__((constructor)) void player_register(void)
{
    DIR *folder = opendir(FOLDER);
    if (folder == NULL) {
        perror(FOLDER);
        abort();
    }
    /* cppcheck-suppress readdirCalled; there is one thread */
    for (const struct dirent *it; (it = readdir(folder)) != NULL;) {
        const char *dot = strrchr(it->d_name, '.');
        if (dot != NULL && strcmp(dot, ".txt") == 0)
            add_file(it->d_name);
    }
    (void)closedir(folder);
}

/* ---- words -------------------------------------------------------------- */

char *transcripts_word(const char **rest)
{
    const char *at = *rest + strspn(*rest, " ");
    size_t len;
    if (*at == '\0')
        return NULL;
    if (*at == '"') {
        len = strcspn(++at, "\"");
        *rest = at + len + (at[len] == '"');
    } else {
        len = strcspn(at, " ");
        *rest = at + len;
    }
    return (char *)textf("%.*s", (int)len, at);
}

/* The word at this place of a line. */
static const char *word_at(const char *line, int place)
{
    char *word = NULL;
    for (int i = 0; i <= place; i++)
        word = transcripts_word(&line);
    return word;
}

/* The value of $name: of the row's column, or of a definition of the file. */
static const char *value_of(const struct take *take, const char *name,
                            size_t len)
{
    const char *const *lines = (const char *const *)take->file->lines;
    for (int i = 1; take->columns != 0 && i <= COLUMNS_MAX; i++) {
        const char *column = word_at(lines[take->columns], i);
        if (column == NULL)
            break;
        if (strlen(column) == len && memcmp(column, name, len) == 0) {
            const char *value = word_at(lines[take->row], i);
            if (value == NULL)
                ck_abort_msg("%s:%d: the row lacks %s", take->file->path,
                             take->row + 1, column);
            return value;
        }
    }
    for (int i = 0; i < take->file->count; i++) {
        const char *word;
        if (transcripts_begins(lines[i], "define") &&
            (word = word_at(lines[i], 1)) != NULL && strlen(word) == len &&
            memcmp(word, name, len) == 0)
            return word_at(lines[i], 2);
    }
    ck_abort_msg("%s:%d: %s: nothing is called $%.*s", take->file->path,
                 take->line, take->name, (int)len, name);
}

const char *transcripts_fill_in(const struct take *take, const char *line)
{
    const char *dollar;
    while ((dollar = strchr(line, '$')) != NULL) {
        size_t len = 1;
        while (isalnum((unsigned char)dollar[len]) || dollar[len] == '_')
            len++;
        line = textf("%.*s%s%s", (int)(dollar - line), line,
                     value_of(take, dollar + 1, len - 1), dollar + len);
    }
    return line;
}
