/*
 * nf-testbed: runs network functions and benches side by side on this machine and measures them.
 * Clients control it with the testbed protocol.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbed/counting_run.h"
#include "testbed/describe.h"
#include "testbed/serve.h"

static volatile bool stop;

static void stop_on(int number)
{
	(void)number;
	stop = true;
}

/* Without SA_RESTART, so that a signal interrupts blocking calls. */
static int install_signal_handlers(void)
{
	struct sigaction action = {.sa_handler = stop_on};

	if (sigaction(SIGINT, &action, NULL) < 0 || sigaction(SIGTERM, &action, NULL) < 0 ||
	    signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
		fprintf(stderr, "testbed: cannot handle signals: %s\n", strerror(errno));
		return -errno;
	}
	return 0;
}

/*
 * Responses go to the original stdout; everything else that is printed goes to stderr. Child
 * processes do not inherit the stream: a client sees its end as soon as the testbed exits.
 */
static FILE *open_responses(void)
{
	int file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (file < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		fprintf(stderr, "testbed: cannot open stdout: %s\n", strerror(errno));
		return NULL;
	}
	return fdopen(file, "w");
}

int main(int argc, char **argv)
{
	struct testbed *testbed = calloc(1, sizeof(*testbed));
	enum options_result parsed =
		testbed ? options_parse(&testbed->options, argc, argv) : OPTIONS_INVALID;
	FILE *out;
	int result;

	if (parsed != OPTIONS_SERVE) {
		free(testbed);
		return parsed == OPTIONS_HELP ? EXIT_SUCCESS : 2;
	}
	out = open_responses();
	if (out && testbed->options.count)
		return counting_run(&testbed->options, out);
	if (!out || install_signal_handlers() < 0 || testbed_open(testbed, &stop) < 0) {
		free(testbed);
		return EXIT_FAILURE;
	}
	print_omitted(testbed);
	result = serve(testbed, STDIN_FILENO, out);
	testbed_close(testbed);
	fclose(out);
	free(testbed);
	return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
