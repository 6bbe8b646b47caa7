/* How programs end: their exit status, and what SIGINT and SIGTERM do. */
#pragma once

#include <signal.h>

enum { DONE = 0, FAILED = 1, BAD_INPUT = 2, INTERRUPTED = 130 };

static volatile sig_atomic_t interrupted;

static inline void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static inline void catch_interrupts(void)
{
	const struct sigaction on_signal = {.sa_handler = interrupt};

	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
}
