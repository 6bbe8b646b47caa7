/* Port forwards of a NAT, read from a file. */
#pragma once

#include "functions/nat/sessions.h"

/*
 * Read the forwards of a file into the sessions of a NAT; false after printing why. A line is
 *
 *     PROTOCOL EXTERNAL:PORT INSIDE:PORT
 *
 * PROTOCOL is tcp or udp, EXTERNAL an address of the NAT. Each endpoint is in one line at most,
 * and all lines of an inside address have one external address.
 */
bool forwards_read(const char *path, struct sessions *sessions);
