#include "letters.h"

#include <check.h>

#include "../play.h"

static const struct {
    char letter;
    enum vote vote;
    const char *value;
} letters_of[] = {
    {'g', VOTE_GRANTED, ""},
    {'w', VOTE_GRANTED, ""},
    {'e', VOTE_EXTENDED, ""},
    {'d', VOTE_DELETED, ""},
    {'f', VOTE_FREE, ""},
    {'s', VOTE_STALE, ""},
    {'u', VOTE_DISCONNECTED, ""},
    {'q', VOTE_NOT_ADMITTED, ""},
    {'t', VOTE_UNANSWERED, ""},
    {'k', VOTE_KEY_REFUSED, ""},
    {'l', VOTE_LATE, ""},
    {'o', VOTE_UNFIT, ""},
    {'X', VOTE_HELD, ""},
    {'h', VOTE_HELD, ""},
    {'A', VOTE_HELD, PLAY_TOKEN_OF(1) ".me"},
    {'B', VOTE_HELD, PLAY_TOKEN_OF(2)},
    {'F', VOTE_HELD, "value F"},
    {'G', VOTE_HELD, "value G"},
};

struct call_reply letters_reply(char letter)
{
    size_t i = 0;
    while (i < sizeof letters_of / sizeof *letters_of &&
           letters_of[i].letter != letter)
        i++;
    ck_assert_msg(i < sizeof letters_of / sizeof *letters_of, "letter %c",
                  letter);
    return (struct call_reply){
        .vote = letters_of[i].vote,
        .state = letter == 'o' ? STATE_LOADING : STATE_NONE,
        .value = span_of(letters_of[i].value),
        .pttl_ms = 1000,
        .was_free = letter == 'w',
        .holders = letter == 'h',
        /* of an extend: the one name is missing */
        .highest = letter == 's' ? 77 : letter == 'f',
    };
}

void letters_answer(enum call_kind kind, const char *letters)
{
    for (int node = 0; letters[node] != '\0'; node++)
        if (letters[node] != '.')
            play_reply(play_find(kind, node), letters_reply(letters[node]));
}
