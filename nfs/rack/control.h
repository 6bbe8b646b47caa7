/*
 * Orders to a process of a rack that stays up: lines on its stdin, answered one by one on stdout.
 *
 *     report     write the report                                          done
 *     prepare    read the tables of the folder `next`, beside the old ones  done
 *     swap       take what was prepared                                    done
 *     drain      a switch only: let nothing in, until nothing moves         done
 *     go         a switch only: let packets in again, drained or not       done
 *     end        a switch only: drain, and end
 *
 * "ready" is said once, at the beginning. What fails is answered "failed", after printing why on
 * stderr. The end of stdin is an order to end, too: the process that kept this one up is gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The folder of tables to prepare, where the process runs. */
#define CONTROL_NEXT "next"

enum control_order {
	CONTROL_NONE,
	CONTROL_REPORT,
	CONTROL_PREPARE,
	CONTROL_SWAP,
	CONTROL_DRAIN,
	CONTROL_GO,
	CONTROL_END,
	CONTROL_ORDERS,
};

struct control {
	bool on; /* without it there are never orders */
	bool ended;
	unsigned int calls;
	size_t length;
	char line[32];
};

/* Begin to take orders, and say that all is ready. */
void control_begin(struct control *control);
/* The next order, if one is there; with `idle` it looks now, else in one of many calls. */
enum control_order control_next(struct control *control, bool idle);
/* Answer an order that is done, or has failed. */
void control_answer(bool done);

/*
 * Write a report aside and rename it; without a path, write it to stdout. `print` writes what
 * `state` did. False after printing why.
 */
bool control_write_report(const char *program, const char *path,
			  bool (*print)(FILE *file, const void *state, bool interrupted),
			  const void *state, bool interrupted);
