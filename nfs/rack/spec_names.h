/* Names of a program, resolved. What is not found is NULL, or nowhere. */
#pragma once

#include "rack/spec.h"

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
