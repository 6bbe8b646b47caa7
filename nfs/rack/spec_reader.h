/* Inside of the reader of programs. */
#pragma once

#include "rack/spec.h"

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
