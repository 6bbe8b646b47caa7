/* Reads what stands for one byte in an expression: a character, an escape, a dot, a class. */
#pragma once

#include "gpu/state/nids/sequences.h"

struct reader {
	const char *at;
	bool ignores_case;
};

/* NULL, or why not. */
const char *byte_class_read(struct reader *reader, struct byte_set *set);
