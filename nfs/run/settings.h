/* Reads `key=value` settings of network functions. */
#pragma once

#include "core/chain.h"

/*
 * Add the setting that `text` says, "key=value", to a function. `text` is cut at the sign and must
 * outlive the function. False after writing into `why` what is wrong.
 */
bool setting_add(struct chain_function *function, char *text, char *why, size_t size);

/* Write the names of a kind's parameters into `names`. */
void setting_names(const struct nf_kind *kind, char *names, size_t size);
