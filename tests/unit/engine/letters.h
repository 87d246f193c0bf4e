/*
 * Replies of nodes as letters:
 *   g granted  w granted: it replaced nothing  e extended  d deleted
 *   f free  s stale  h held by readers
 *   A B held by a token of ours, A or B   F G by others' values   X by a type
 *   u unreachable  q quarantined  t silent  l late  o loading  k key refused
 *   . pending
 */
#ifndef LETTERS_H
#define LETTERS_H

#include "../../../server/engine/port/call.h"

/* Any of them but pending. */
struct call_reply letters_reply(char letter);

/* The nodes, one letter each, answer their oldest calls of this kind in a play.
 */
void letters_answer(enum call_kind kind, const char *letters);

#endif
