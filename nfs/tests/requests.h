/* Reading of requests and their settings, for tests. */
#pragma once

#include <string.h>

#include "testbed/request.h"
#include "tests/support.h"

/* A workload from its JSON. */
static inline struct load parsed(const char *text, struct faults *faults)
{
	json_t *json = json_loads(text, 0, NULL);
	struct load load;

	*faults = (struct faults){0};
	assert_non_null(json);
	request_load(json, &load, faults);
	json_decref(json);
	return load;
}

/* The value of a setting; -1 if it is not among them. */
static inline double value_of(const struct nf_setting *settings, unsigned int n, const char *name)
{
	for (unsigned int i = 0; i < n; i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].value;
	return -1;
}
