/* What a function prints when its settings are refused. */
#ifndef NFS_TESTS_REFUSAL_H
#define NFS_TESTS_REFUSAL_H

#include <stdio.h>
#include <unistd.h>

#include "tests/support.h"

/* Create a function, which must fail; returns what it printed, until the next call. */
static inline const char *refusal(const char *name, const struct nf_setting *settings,
				  unsigned int n_settings)
{
	static char printed[8192];
	const struct nf_config config = {.name = name};
	const int terminal = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	struct nf *nf;
	size_t length;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	nf = nf_create(&config, settings, n_settings);
	fflush(stderr);
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	rewind(file);
	length = fread(printed, 1, sizeof(printed) - 1, file);
	printed[length] = '\0';
	fclose(file);
	assert_null(nf);
	return printed;
}

#endif
