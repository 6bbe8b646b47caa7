/* Inside of the reader of programs. */
#pragma once

#include <rte_common.h>

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
/* Report a line that is not what it must be. */
void spec_expected(struct reader *reader, const struct line *line, const char *wanted);
bool spec_word_is(const struct line *line, unsigned int i, const char *word);
/* Whatever follows is in a block. */
void spec_enter(struct reader *reader, const struct line *line, enum block block);

/* A line in a table, a selector or a learner, or in one of their blocks. */
void spec_read_in_table(struct reader *reader, const struct line *line);

/* Avoid what DPDK 22.11 does wrong. False after printing that there is no memory. */
bool spec_rewrite(struct spec *spec, unsigned int drop_port);
