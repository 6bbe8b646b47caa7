/* Starts what a program needs before it makes a chain. */
#pragma once

#include "core/chain.h"

/*
 * Start EAL without devices, on any processor that the process may use. 0, or -1 after printing why
 * in the name of `program`.
 */
int start_eal(const char *program, unsigned int memory_mb);

/*
 * Accelerators in software for the functions of a chain, served on the same core. False after
 * printing why; those that were created are there.
 */
bool start_accelerators(const struct chain_spec *spec, struct accelerator **accelerators);
