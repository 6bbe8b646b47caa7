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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accelerators/accelerator.h"
#include "core/command_line.h"
#include "testbed/describe.h"
#include "testbed/hardware_events.h"
#include "testbed/options.h"
#include "testbed/request.h"
#include "testbed/serve.h"
#include "testbed/worker.h"
#include "testbed/workload.h"

/* A program that runs one load alone, so that its events can be counted. */

#define MOST_TURNS 100
#define BURST_US 10 /* a simulated clock: time under a simulator is not packet time */

static int parse(const char *text, struct load *load)
{
	struct faults faults = {0};
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (json)
		request_load(json, load, &faults);
	else
		fault(&faults, "%s", error.text);
	json_decref(json);
	if (faults.n > 0)
		fprintf(stderr, "testbed: --count: %s\n", faults.text);
	return faults.n > 0 ? -EINVAL : 0;
}

static struct workload *create(const struct load *load)
{
	struct accelerator *accelerators[ACCELERATOR_KINDS] = {NULL};

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (load_accelerators(load) & NF_USES(kind))
			accelerators[kind] = accelerator_create((enum accelerator_kind)kind);
	return workload_create(load, accelerators, 0);
}

static uint64_t do_units(struct workload *workload, uint64_t units)
{
	static uint64_t now_us = 1;
	const uint64_t before = workload_done(workload);

	while (workload_done(workload) - before < units)
		workload_step(workload, 0, now_us += BURST_US);
	return workload_done(workload) - before;
}

/*
 * End a forked child: cachegrind then writes the counts up to here. Without cachegrind, to fork
 * makes the processor forget the addresses of pages; a page whose address it remembers would not
 * count as referenced again.
 */
static int mark(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(EXIT_SUCCESS);
	if (child < 0 || waitpid(child, NULL, 0) < 0) {
		fprintf(stderr, "testbed: cannot fork: %s\n", strerror(errno));
		return -errno;
	}
	return 0;
}

static int clear_referenced(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file || fputs("1", file) < 0 || fclose(file) != 0) {
		fprintf(stderr, "testbed: /proc/self/clear_refs: %s\n", strerror(errno));
		return -errno;
	}
	return 0;
}

/*
 * Whether a line of smaps starts a mapping, and if so whether of a file: "from-to rwxp ... path".
 */
static bool is_mapping_start(const char *line, bool *of_file)
{
	unsigned long from, to;
	const char *path = strchr(line, '/');

	if (sscanf(line, "%lx-%lx ", &from, &to) != 2)
		return false;
	*of_file = path && strncmp(path, "/memfd:", 7) != 0;
	return true;
}

/*
 * Bytes of data pages referenced since. Pages of files are skipped: other processes reference them.
 */
static unsigned long referenced(void)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long sum = 0, kilobytes;
	bool of_file = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (!is_mapping_start(line, &of_file) && !of_file &&
		    sscanf(line, "Referenced: %lu kB", &kilobytes) == 1)
			sum += kilobytes;
	if (file)
		fclose(file);
	return sum * 1024;
}

/* Process units until each event was on a hardware counter; `*done` is their number. */
static int count_events(const struct options *options, struct workload *workload, uint64_t *done,
			double counts[HARDWARE_EVENTS])
{
	struct hardware_reading before[HARDWARE_EVENTS], after[HARDWARE_EVENTS];
	struct hardware_events events;
	int result = hardware_events_open(&events);

	if (result == 0)
		result = hardware_events_read(&events, before);
	for (int i = 0; i < MOST_TURNS && (result == 0 || result == -EBUSY); i++) {
		*done += do_units(workload, options->units);
		result = hardware_events_read(&events, after);
		if (result == 0)
			result = hardware_events_between(before, after, counts);
		if (result == 0)
			break;
	}
	if (result < 0)
		fprintf(stderr, "testbed: no hardware events: %s\n", strerror(-result));
	return result;
}

static int count_units(const struct options *options, struct workload *workload, FILE *out)
{
	double counts[HARDWARE_EVENTS];
	uint64_t done = 0;

	if (!options->count_events)
		done = do_units(workload, options->units);
	else if (count_events(options, workload, &done, counts) < 0)
		return -EIO;
	fprintf(out, "units %lu\n", (unsigned long)done);
	for (int i = 0; i < HARDWARE_EVENTS && options->count_events; i++)
		fprintf(out, "%s %.0f\n", hardware_event_names[i], counts[i]);
	return 0;
}

static int count(const struct options *options, const struct load *load, struct workload *workload,
		 FILE *out)
{
	do_units(workload,
		 load->bench ? options->units : load->traffic.flows + options->units / 4);
	if ((options->count_pages && clear_referenced() < 0) || mark() < 0 ||
	    count_units(options, workload, out) < 0)
		return EXIT_FAILURE;
	if (options->count_pages)
		fprintf(out, "pages %lu\n", referenced());
	return fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Exit when the parent process exits, even if it is killed. */
static int end_with_parent(unsigned int parent)
{
	if (parent == 0)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
		fprintf(stderr, "testbed: cannot watch process %u: %s\n", parent, strerror(errno));
		return -errno;
	}
	return getppid() == (pid_t)parent ? 0 : -ESRCH; /* it may have exited before */
}

/*
 * Fill the tables of the load given by the options, process its units, and print their number,
 * "units N". A forked child exits in between: cachegrind writes counts for both processes, and the
 * difference belongs to the units alone. With `count_pages`, "pages N" is the number of bytes in
 * pages that the units referenced. Returns an exit status.
 */
static int counting_run(const struct options *options, FILE *out)
{
	/* the kernel does not report which large pages were referenced */
	const struct eal_config eal_config = {.memory_mb = options->memory_mb, .small_pages = true};
	struct machine machine;
	struct workers workers;
	struct load load;
	struct workload *workload;

	if (end_with_parent(options->parent) < 0 || parse(options->count, &load) < 0 ||
	    machine_read(&machine, options->cores) < 0)
		return EXIT_FAILURE;
	machine.n_cores = 1;
	if (workers_start(&workers, &machine, &eal_config) < 0)
		return EXIT_FAILURE;
	workload = create(&load);
	if (!workload)
		return EXIT_FAILURE;
	/* no cleanup: it would be counted, too */
	_exit(count(options, &load, workload, out));
}

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
	int result = testbed ? options_parse(&testbed->options, argc, argv) : EXIT_FAILURE;
	FILE *out;

	if (result != COMMAND_LINE_READ) {
		free(testbed);
		return result;
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
