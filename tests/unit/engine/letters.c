#include "letters.h"

#include <check.h>

struct call_reply letters_reply(char letter)
{
    static const char *const values[] = {
        "0000000000000001.00112233445566778899aabbccddeeff01234567.me",
        "0000000000000002.00112233445566778899aabbccddeeff01234567",
        "value F",
        "value G",
    };
    struct call_reply reply = {.pttl_ms = 1000};
    switch (letter) {
    case 'g':
        reply.vote = VOTE_GRANTED;
        break;
    case 'e':
        reply.vote = VOTE_EXTENDED;
        break;
    case 'd':
        reply.vote = VOTE_DELETED;
        break;
    case 'f':
        reply.vote = VOTE_FREE;
        break;
    case 's':
        reply.vote = VOTE_STALE;
        reply.highest = 77;
        break;
    case 'u':
        reply.vote = VOTE_DISCONNECTED;
        break;
    case 'q':
        reply.vote = VOTE_NOT_ADMITTED;
        break;
    case 't':
        reply.vote = VOTE_UNANSWERED;
        break;
    case 'k':
        reply.vote = VOTE_KEY_REFUSED;
        break;
    case 'l':
        reply.vote = VOTE_LATE;
        break;
    case 'X':
        reply.vote = VOTE_HELD;
        break;
    case 'A':
    case 'B':
        reply.vote = VOTE_HELD;
        reply.value = span_of(values[letter - 'A']);
        break;
    case 'F':
    case 'G':
        reply.vote = VOTE_HELD;
        reply.value = span_of(values[2 + letter - 'F']);
        break;
    default:
        ck_abort_msg("letter %c", letter);
    }
    return reply;
}
