/* Reads Perl-compatible expressions of bytes as far as the device's automaton has them. */
#pragma once

#include "gpu/state/nids/sequences.h"

/*
 * The sequences of an expression, trimmed; the caller frees them. A dot is any byte. Returns NULL,
 * or why the device cannot have it: anchors, assertions, back references, unbounded groups, too
 * many alternatives.
 */
const char *expression_read(const char *expression, struct sequences *made);
