/* SPDX-License-Identifier: MIT */
/*
 * Replies of nodes as letters:
 *   g granted  w granted: it replaced nothing  e extended  d deleted
 *   f free  s stale  h held by readers
 *   A B held by a token of ours, A or B   F G by others' values   X by a type
 *   u unreachable  q quarantined  t silent  l late  o loading  k key refused
 *   m misconfigured  O held by the token of play_ask_again's key  . pending
 */
#ifndef LETTERS_H
#define LETTERS_H

#include "../../../server/engine/engine.h"
#include "../../../server/engine/port/call.h"

/* Any of them but pending. */
struct call_reply letters_reply(char letter);

/* The nodes, one letter each, answer their oldest calls of this kind in a play.
 */
void letters_answer(enum call_kind kind, const char *letters);

/* Which nodes got a call of this kind, the first one first: "012". */
const char *letters_asked(enum call_kind kind);

/*
 * Plays a scene, word by word:
 *
 *   acquire        asks for that: also win, again (with PLAY_KEY), extend,
 *                  release, inspect, force, force_all; read as a reader,
 *                  read_again with PLAY_KEY
 *   acquire:gg.A   the nodes answer their oldest calls; also repeat, replicate
 *   release?012    these nodes got such a call, in this order
 *   release#5      so many calls of this kind were sent
 *   extend~10      time passes until so many were sent
 *   release@04     these nodes owe an answer to one;  release!04  they do not
 *   =held          the outcome of the latest request;  1=held  of the first
 *   leave, leave+  its client leaves, without or with a grant;  close
 *   down:3 up:3 connect:3 stall:3   for these nodes, a digit each
 *   pass:50000     so many µs pass
 *   owed#1 answers#1 votes#3 thin#0 under_way#0   these counts are so
 */
void scene(const char *text);
void scene_more(const char *text); /* the same scene goes on */

/* A reader's acquire with PLAY_KEY. */
engine_op letters_read_again(int64_t wait_ms);

/* The latest request of the scene. */
engine_op scene_op(void);

#endif
