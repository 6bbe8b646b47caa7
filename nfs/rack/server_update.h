/* New tables for the functions of a running chain. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/chain.h"
#include "run/chain_file.h"

/* What is prepared. */
struct server_update {
	struct chain_file file;
	struct nf *instances[CHAIN_MOST_FUNCTIONS]; /* NULL: the function stays as it is */
};

/* What another thread prepares, so that packets go on meanwhile. */
struct server_preparing {
	pthread_t thread;
	cpu_set_t processors; /* on which it may run */
	const struct chain *chain;
	const struct chain_spec *spec;
	struct server_update *update;
	atomic_bool done;
	bool running; /* until its end is waited for */
};

/*
 * Begin to prepare what the chain file of the folder CONTROL_NEXT says, which has the same functions
 * as the one of `spec` and its files beside it: an instance of each function whose settings, or the
 * file that they name, differ. False after printing that there is no thread.
 */
bool server_preparing_begin(struct server_preparing *preparing);
/* What was prepared, or NULL, after printing why; waits for it. */
struct server_update *server_preparing_end(struct server_preparing *preparing);
void server_update_free(struct server_update *update);

/*
 * Let the chain go on with what is prepared, whose file takes the place of `file`, and free it. The
 * same must hold as for chain_exchange().
 */
void server_update_apply(struct server_update *update, struct chain *chain,
			 struct chain_file *file);
