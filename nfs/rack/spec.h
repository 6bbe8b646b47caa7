/*
 * Programs of the switch, in DPDK's .spec text: structs, headers, metadata, actions, tables,
 * selectors, learners, register and meter arrays, and the instructions to apply.
 *
 * DPDK 22.11 has no public reader of this text; this one reads it, checks it, and hands it to the
 * public functions that build a pipeline. It reads no extern objects.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_swx_pipeline.h>

#include "rack/text.h"

struct spec_instructions {
	const char **texts;
	unsigned int *lines;
	unsigned int n;
};

struct spec_struct {
	const char *name;
	unsigned int line;
	struct rte_swx_field_params *fields;
	unsigned int n;
	bool varbit; /* the last field's size varies */
};

struct spec_header {
	const char *name, *struct_name;
	unsigned int line;
};

struct spec_action {
	const char *name, *struct_name; /* struct_name: of its arguments, or NULL */
	unsigned int line;
	struct spec_instructions instructions;
};

/* Fields, actions and the default action, of tables and learners. */
struct spec_keys {
	const char **fields;
	enum rte_swx_table_match_type *matches; /* of a table */
	unsigned int *lines;
	unsigned int n;
};

struct spec_choice {
	const char **names;
	int *in_entries, *as_default;
	unsigned int *lines;
	unsigned int n;
	const char *by_default, *arguments; /* arguments: NULL for none */
	unsigned int default_line;
	bool constant;
};

enum spec_table_kind { SPEC_TABLE, SPEC_SELECTOR, SPEC_LEARNER };

struct spec_table {
	enum spec_table_kind kind;
	const char *name;
	unsigned int line;
	struct spec_keys keys; /* of a selector: what chooses the member */
	struct spec_choice actions;
	const char *type, *pragma, *hash;
	uint32_t size;
	uint32_t timeouts[16];
	unsigned int n_timeouts;
	const char *group_id, *member_id; /* of a selector */
	uint32_t groups, members;
};

struct spec_array {
	const char *name;
	unsigned int line;
	bool meters;
	uint32_t size;
	uint64_t initial;
};

struct spec {
	struct text text;
	struct spec_struct *structs;
	struct spec_header *headers;
	struct spec_action *actions;
	struct spec_table *tables;
	struct spec_array *arrays;
	unsigned int n_structs, n_headers, n_actions, n_tables, n_arrays;
	const char *metadata;
	unsigned int metadata_line;
	struct spec_instructions apply;
	unsigned int apply_line;
	char **written; /* instructions that are not those of the text */
	unsigned int n_written;
	bool has_place; /* in the metadata, for register arrays */
};

/* Read and check a program. NULL after printing every fault as FILE:LINE. */
struct spec *spec_read(const char *path);
void spec_free(struct spec *spec);

/* Report what is wrong with names and instructions, as faults of the text. */
void spec_check(struct spec *spec);

/*
 * Add all of a program to a pipeline that has its ports, and build it. False after printing which
 * part DPDK refuses, as FILE:LINE. What the program drops goes to `drop_port`.
 */
bool spec_build(struct spec *spec, struct rte_swx_pipeline *pipeline, unsigned int drop_port);

/* Whether a program has a header `arrival` of 64 and 32 bits (`switch.h`). */
bool spec_has_arrivals(const struct spec *spec);

/* The files of the reader share what is below. */

/* What the lines are in. */
enum block {
	TOP,
	IN_STRUCT,
	IN_ACTION,
	IN_TABLE,
	IN_KEY,
	IN_ACTIONS,
	IN_TIMEOUT,
	IN_APPLY,
};

struct reader {
	struct spec *spec;
	struct text *text;
	enum block block;
	unsigned int block_line;
	bool failed; /* no memory */
};

/* Make room for one more element, which is zero. NULL without memory. */
void *spec_grow(struct reader *reader, void *array, unsigned int n, size_t size);

/* Names, resolved. What is not found is NULL, or nowhere. */
const struct spec_struct *spec_find_struct(const struct spec *spec, const char *name);
const struct spec_header *spec_find_header(const struct spec *spec, const char *name,
					   size_t length);
const struct spec_action *spec_find_action(const struct spec *spec, const char *name);
const struct spec_table *spec_find_table(const struct spec *spec, const char *name);
const struct spec_array *spec_find_array(const struct spec *spec, const char *name);
const struct rte_swx_field_params *spec_find_field(const struct spec_struct *in, const char *name);

enum spec_place { SPEC_NOWHERE, SPEC_IN_HEADER, SPEC_IN_METADATA, SPEC_IN_ARGUMENTS };

/*
 * Where the field is that "h.HEADER.FIELD", "m.FIELD" or, in an action, "t.FIELD" names; `*in`
 * becomes its struct unless `in` is NULL.
 */
enum spec_place spec_place_of(const struct spec *spec, const struct spec_action *action,
			      const char *word, const struct spec_struct **in);

/* Report what is wrong with instructions; `action` is NULL for those to apply. */
void spec_check_instructions(struct spec *spec, const struct spec_instructions *all,
			     const struct spec_action *action, unsigned int line);
