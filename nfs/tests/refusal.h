/* What a function prints when its settings are refused. */
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "tests/support.h"

/* What stderr gets, kept in a file. */
struct caught {
	FILE *file;
	int terminal;
};

static inline struct caught stderr_catch(void)
{
	const struct caught caught = {.file = tmpfile(), .terminal = dup(STDERR_FILENO)};

	assert_non_null(caught.file);
	fflush(stderr);
	dup2(fileno(caught.file), STDERR_FILENO);
	return caught;
}

/* The beginning of what was printed since, until the next call. */
static inline const char *stderr_release(const struct caught *caught)
{
	static char printed[8192];
	size_t length;

	fflush(stderr);
	dup2(caught->terminal, STDERR_FILENO);
	close(caught->terminal);
	rewind(caught->file);
	length = fread(printed, 1, sizeof(printed) - 1, caught->file);
	printed[length] = '\0';
	fclose(caught->file);
	return printed;
}

/* What functions have allocated. */
static inline unsigned int allocations(void)
{
	struct rte_malloc_socket_stats stats = {0};

	rte_malloc_get_socket_stats((int)rte_socket_id_by_idx(0), &stats);
	return stats.alloc_count;
}

/*
 * Create a function, which must fail, and leave no memory; returns what it printed, until the next
 * call.
 */
static inline const char *refusal(const char *name, const struct nf_setting *settings,
				  unsigned int n_settings)
{
	const struct nf_config config = {.name = name};
	const unsigned int before = allocations();
	const struct caught caught = stderr_catch();
	struct nf *nf = nf_create(&config, settings, n_settings);
	const char *printed = stderr_release(&caught);

	assert_null(nf);
	assert_int_equal(allocations(), before);
	return printed;
}
