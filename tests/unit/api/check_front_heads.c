/* SPDX-License-Identifier: MIT */
/*
 * The largest heads that are taken, with the longest ids: in the path of a
 * request, and in the Location of an answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../api/message/head.h"
#include "../../lib/suite/suite.h"
#include "served.h"

#define TOKEN "0000000000000007.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

enum { VALUE_COST = 80, TEXT_SIZE = 32768 };

/* Sixteen names that have 4096 bytes together, as JSON and as an id. */
static struct {
    char body[2 * NAMES_LEN_MAX];
    char names[NAMES_LEN_MAX];
    char id[ID_MAX + 1];
} longest;

static void set_up(void)
{
    size_t len = 0, body_len = (size_t)sprintf(longest.body, "%s", "");
    for (int i = 0; i < NAMES_MAX; i++) {
        char name[300];
        int bytes = i == NAMES_MAX - 1 ? 254 : 255;
        sprintf(name, "%c%0*d%s", 'a' + i, bytes - 1, 0,
                i == NAMES_MAX - 1 ? "\xc3\xa9" : "");
        len += span_copy(longest.names + len, span_of(i > 0 ? "\n" : ""));
        len += span_copy(longest.names + len, span_of(name));
        body_len += (size_t)sprintf(longest.body + body_len, "%s\"%s\"%s",
                                    i == 0 ? "{\"resources\":[" : ",", name,
                                    i == NAMES_MAX - 1 ? "]}" : "");
    }
    ck_assert_uint_eq(len, NAMES_LEN_MAX);
    longest.id[id_encode(longest.id, (struct span){longest.names, len})] = '\0';
    ck_assert_uint_eq(strlen(longest.id), ID_MAX);
    served_begin();
}

/* How a head is filled up to its limit. */
enum filling { ONE_FIELD, MANY_FIELDS, COOKIES, ARGUMENTS, FILLINGS };

/*
 * A request whose head costs so much beside the path, which stands in line
 * before the blank.
 */
static const char *request(const char *method, const char *path,
                           const char *body, enum filling filling, int cost)
{
    static char text[TEXT_SIZE];
    char query[HEAD_COST_MAX] = "", fields[HEAD_COST_MAX] = "";
    char rest[512];
    int count = 3, left;
    int len = snprintf(rest, sizeof rest,
                       " HTTP/1.1\r\nHost: x\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: %zu\r\n",
                       strlen(body));
    left = cost - len - (int)strlen(method) - 3 - count * VALUE_COST;
    if (filling == ONE_FIELD) {
        sprintf(fields, "X-Pad: %0*d\r\n", left - VALUE_COST - 9, 0);
    } else if (filling == MANY_FIELDS) {
        for (int i = 0; i < left / (VALUE_COST + 6); i++)
            strcat(fields, "a: b\r\n");
    } else if (filling == COOKIES) {
        strcat(fields, "Cookie: ");
        for (int i = 0; i < (left - 2 * VALUE_COST - 10) / (VALUE_COST + 10);
             i++)
            strcat(fields, "a=b; ");
        strcat(fields, "\r\n");
    } else {
        strcat(query, "?");
        for (int i = 0; i < (left - 1) / (VALUE_COST + 4); i++)
            strcat(query, "a=b&");
    }
    sprintf(text, "%s %s%s%s%s\r\n%s", method, path, query, rest, fields, body);
    return text;
}

static void expect(int fd, const char *start)
{
    const char *answer = served_read(fd, "}\n");
    ck_assert_msg(strncmp(answer, start, strlen(start)) == 0, "%.400s", answer);
}

/* ---- the id in the path ------------------------------------------------- */

static const struct {
    const char *method, *last, *body;
    enum call_kind kind;
} calls[] = {
    {"GET", "", "", CALL_INSPECT},
    {"DELETE", "", "{\"token\":\"" TOKEN "\"}", CALL_RELEASE},
    {"PUT", "/extend", "{\"token\":\"" TOKEN "\"}", CALL_EXTEND},
};

enum { CALLS = COUNT(calls) };

static bool has_asked(void *arg)
{
    const enum call_kind *kind = arg;
    return play_count(*kind) >= PLAY_NODES;
}

SUITE(front_heads, .set_up = set_up, .tear_down = served_end);

TEST_RANGE(the_longest_id_may_stand_in_the_largest_head, 0, CALLS *FILLINGS)
{
    char path[HEAD_PATH_MAX + 1];
    enum call_kind kind = calls[_i % CALLS].kind;
    sprintf(path, "/locks/%%7E%%7E%s%s", longest.id + 2,
            calls[_i % CALLS].last);
    int fd = served_ask(request(calls[_i % CALLS].method, path,
                                calls[_i % CALLS].body,
                                (enum filling)(_i / CALLS), HEAD_COST_MAX));
    turns_until(served.loop, has_asked, &kind);
    ck_assert_uint_eq(play.sent[0].call.resource.len, NAMES_LEN_MAX);
    play_answer_range(kind, 0, PLAY_NODES, VOTE_FREE);
    expect(fd, kind == CALL_INSPECT ? "HTTP/1.1 200 " : "HTTP/1.1 404 ");
    close(fd);
}

/* ---- the id in Location ------------------------------------------------- */

TEST_RANGE(the_longest_id_may_answer_the_largest_head, 0, FILLINGS)
{
    int fd = served_ask(request("POST", "/locks", longest.body,
                                (enum filling)_i, HEAD_COST_MAX));
    served_await_acquires(1);
    served_grant();
    const char *answer = served_read(fd, "}\n");
    ck_assert_msg(strncmp(answer, "HTTP/1.1 201 ", 13) == 0, "%.400s", answer);
    const char *location = strstr(answer, "\r\nLocation: /locks/");
    ck_assert_ptr_nonnull(location);
    ck_assert_int_eq(strncmp(strchr(location, '~'), longest.id, ID_MAX), 0);
    const char *id = strstr(answer, "{\"id\":\"~~");
    ck_assert_ptr_nonnull(id);
    ck_assert_int_eq(strncmp(strchr(id, '~'), longest.id, ID_MAX), 0);
    close(fd);
}
