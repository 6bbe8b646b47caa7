/* Parameters of network functions and benches in requests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "core/parameters.h"
#include "testbed/faults.h"

/* Settings to read, and whose they are. */
struct settings {
	const char *of;
	const struct nf_parameter *parameters;
	unsigned int n_parameters;
	bool needs_offered; /* all parameters that the testbed offers must be given */
	struct nf_setting *list;
	unsigned int *n;
};

/* A number in the parameter's range; faults name `of`, its owner. */
double number_read(const json_t *object, const struct nf_parameter *parameter, const char *of,
		   struct faults *faults);

/* Read an object of parameters, or NULL for none. */
void settings_read(const json_t *given, struct settings *settings, struct faults *faults);

/* By default tables have twice as many entries as there are flows: full hash tables are slow. */
void settings_size_tables(const json_t *given, struct settings *settings, uint32_t flows);

json_t *settings_json(const struct nf_setting *list, unsigned int n);
