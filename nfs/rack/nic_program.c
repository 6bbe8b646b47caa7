#include "rack/nic_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define NAMES ".rodata.names"
#define COUNTERS ".bss"
#define CLOCK ".data.clock" /* of programs that keep rates */
#define METERS ".data.meters"
#define RULES ".bss.rules" /* of programs that count how often each rule decided */
#define LONGEST_NAME 1000
#define ROOM 1024 /* that a packet may grow by */

struct nic_program {
	struct bpf_object *object;
	const char *names; /* lines: what, its place, whose */
	size_t n_names;
	int program, counters;
	int clock; /* -1: none */
	int rules; /* -1: none */
	uint32_t n_counters, n_rules;
	uint64_t *values, *rule_values;
	uint8_t bytes[NIC_MOST_BYTES + ROOM];
};

/* What libbpf says, warnings only: among them the verifier's log. */
static int print_warning(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), n = strlen(end);

	return length >= n && strcmp(text + length - n, end) == 0;
}

static struct bpf_map *find_map(const struct bpf_object *object, const char *end)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (ends_with(bpf_map__name(map), end))
			return map;
	return NULL;
}

/* Find what a generated program has. False after printing what is missing. */
static bool find_parts(struct nic_program *program, const char *path)
{
	struct bpf_map *names = find_map(program->object, NAMES);

	if (!names || !find_map(program->object, COUNTERS) ||
	    !bpf_object__next_program(program->object, NULL)) {
		fprintf(stderr,
			"%s: no program of a SmartNIC: it lacks code, counters or their names\n"
			"hint: `placer chain compile` writes such programs\n",
			path);
		return false;
	}
	program->names = bpf_map__initial_value(names, &program->n_names);
	return true;
}

static bool load(struct nic_program *program, const char *path)
{
	const int result = bpf_object__load(program->object);
	struct bpf_map *counters = find_map(program->object, COUNTERS);
	struct bpf_map *clock = find_map(program->object, CLOCK);
	struct bpf_map *rules = find_map(program->object, RULES);

	if (result < 0) {
		fprintf(stderr, "%s: the kernel refuses the program: %s\n%s", path,
			strerror(-result),
			result == -EPERM ? "hint: root may, or CAP_BPF with CAP_NET_ADMIN\n" : "");
		return false;
	}
	program->program = bpf_program__fd(bpf_object__next_program(program->object, NULL));
	program->counters = bpf_map__fd(counters);
	program->clock = clock ? bpf_map__fd(clock) : -1;
	program->rules = rules ? bpf_map__fd(rules) : -1;
	program->n_rules = rules ? bpf_map__value_size(rules) / sizeof(*program->rule_values) : 0;
	program->rule_values = calloc(program->n_rules + 1, sizeof(*program->rule_values));
	program->n_counters = bpf_map__value_size(counters) / sizeof(*program->values);
	program->values = calloc(program->n_counters, sizeof(*program->values));
	if (!program->values || !program->rule_values)
		fprintf(stderr, "nf-nic: no memory for %u counters\n", program->n_counters);
	return program->values && program->rule_values;
}

struct nic_program *nic_program_load(const char *path)
{
	struct nic_program *program = calloc(1, sizeof(*program));

	libbpf_set_print(print_warning);
	if (!program) {
		fprintf(stderr, "nf-nic: no memory for %s\n", path);
		return NULL;
	}
	program->object = bpf_object__open_file(path, NULL);
	if (!program->object) {
		char why[128];

		libbpf_strerror(errno, why, sizeof(why));
		fprintf(stderr, "%s: %s\n", path, why);
	} else if (find_parts(program, path) && load(program, path)) {
		return program;
	}
	nic_program_free(program);
	return NULL;
}

void nic_program_free(struct nic_program *program)
{
	if (!program)
		return;
	bpf_object__close(program->object);
	free(program->values);
	free(program->rule_values);
	free(program);
}

/* Whether a map has what a program keeps, other than constants and counts of rules. */
static bool is_kept(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	return ends_with(name, COUNTERS) || ends_with(name, METERS);
}

bool nic_program_take_over(struct nic_program *program, const struct nic_program *from)
{
	struct bpf_map *map;
	const uint32_t key = 0;

	bpf_object__for_each_map(map, program->object)
	{
		const struct bpf_map *before = find_map(from->object, bpf_map__name(map));
		const uint32_t size = bpf_map__value_size(map);
		void *value = NULL;
		int error = 0;

		if (!is_kept(map))
			continue;
		if (before && bpf_map__value_size(before) == size)
			value = malloc(size);
		error = value ? bpf_map_lookup_elem(bpf_map__fd(before), &key, value) : -EINVAL;
		if (error == 0)
			error = bpf_map_update_elem(bpf_map__fd(map), &key, value, BPF_ANY);
		free(value);
		if (error == 0)
			continue;
		fprintf(stderr, "nf-nic: counters are not those of before: %s\n", strerror(-error));
		return false;
	}
	return true;
}

int nic_program_descriptor(const struct nic_program *program)
{
	return program->program;
}

bool nic_program_set_clock(struct nic_program *program, uint64_t time_us)
{
	const uint64_t time_ns = 1000 * time_us;
	const uint32_t key = 0;

	if (program->clock < 0 ||
	    bpf_map_update_elem(program->clock, &key, &time_ns, BPF_ANY) == 0)
		return true;
	fprintf(stderr, "nf-nic: the clock of the program: %s\n", strerror(errno));
	return false;
}

bool nic_program_run(struct nic_program *program, const uint8_t *bytes, uint32_t length,
		     uint64_t time_us, struct nic_result *result)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes, .data_size_in = length,
		    .data_out = program->bytes, .data_size_out = sizeof(program->bytes),
		    .repeat = 1, );
	int error;

	if (!nic_program_set_clock(program, time_us))
		return false;
	error = bpf_prog_test_run_opts(program->program, &options);
	if (error < 0) {
		fprintf(stderr, "nf-nic: the kernel does not run a packet of %u bytes: %s\n",
			length, strerror(-error));
		return false;
	}
	*result = (struct nic_result){options.retval, options.data_size_out, program->bytes};
	return true;
}

/* A line of names. */
struct name {
	char what[16], of[LONGEST_NAME];
	uint32_t place;
};

/* Read the next line; false at the end, or at one that is none. */
static bool next_name(const struct nic_program *program, size_t *at, struct name *name)
{
	const char *line = program->names + *at;
	const size_t left = program->n_names - *at;
	const char *end = left > 0 ? memchr(line, '\n', left) : NULL;
	char copy[LONGEST_NAME];

	if (!end || (size_t)(end - line) >= sizeof(copy))
		return false;
	memcpy(copy, line, (size_t)(end - line));
	copy[end - line] = '\0';
	*at += (size_t)(end - line) + 1;
	if (sscanf(copy, "%15s %u %999[^\n]", name->what, &name->place, name->of) != 3)
		return false;
	return strcmp(name->what, "rules") == 0 || name->place < program->n_counters;
}

static bool read_counters(struct nic_program *program)
{
	const uint32_t key = 0;

	if (bpf_map_lookup_elem(program->counters, &key, program->values) == 0 &&
	    (program->rules < 0 ||
	     bpf_map_lookup_elem(program->rules, &key, program->rule_values) == 0))
		return true;
	fprintf(stderr, "nf-nic: counters: %s\n", strerror(errno));
	return false;
}

static void write_text(const char *text, FILE *stream)
{
	fputc('"', stream);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

/* How often each rule of a function decided, by its number; those that never did are left out. */
static void write_rules(const struct nic_program *program, const char *of, FILE *stream)
{
	const char *before = ", \"rules\": {";
	struct name name;

	for (size_t at = 0; next_name(program, &at, &name);) {
		unsigned int n = 0;
		int read = 0;

		if (strcmp(name.what, "rules") != 0 ||
		    sscanf(name.of, "%u %n", &n, &read) != 1 || strcmp(name.of + read, of) != 0)
			continue;
		for (unsigned int i = 0; i < n && name.place + i < program->n_rules; i++) {
			const uint64_t count = program->rule_values[name.place + i];

			if (count == 0)
				continue;
			fprintf(stream, "%s\"%u\": %" PRIu64, before, i + 1, count);
			before = ", ";
		}
	}
	if (before[2] == '\0')
		fputc('}', stream);
}

bool nic_program_write_functions(struct nic_program *program, FILE *stream)
{
	struct name name;
	uint64_t entered = 0;
	bool first = true;

	if (!read_counters(program))
		return false;
	fputc('[', stream);
	for (size_t at = 0; next_name(program, &at, &name);) {
		const uint64_t value = program->values[name.place];

		if (strcmp(name.what, "entered") == 0)
			entered = value;
		if (strcmp(name.what, "sent") != 0)
			continue;
		fputs(first ? "{\"name\": " : ", {\"name\": ", stream);
		write_text(name.of, stream);
		fprintf(stream,
			", \"entered\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"dropped\": %" PRIu64,
			entered, value, entered - value);
		write_rules(program, name.of, stream);
		fputc('}', stream);
		first = false;
	}
	fputc(']', stream);
	return true;
}

bool nic_program_dropped(struct nic_program *program, uint64_t *dropped)
{
	struct name name;

	if (!read_counters(program))
		return false;
	*dropped = 0;
	for (size_t at = 0; next_name(program, &at, &name);) {
		if (strcmp(name.what, "sent") == 0)
			*dropped -= program->values[name.place];
		else if (strcmp(name.what, "rules") != 0)
			*dropped += program->values[name.place];
	}
	return true;
}

bool nic_program_write_reasons(struct nic_program *program, FILE *stream)
{
	struct name name;

	if (!read_counters(program))
		return false;
	for (size_t at = 0; next_name(program, &at, &name);) {
		if (strcmp(name.what, "reason") != 0)
			continue;
		fputs(", ", stream);
		write_text(name.of, stream);
		fprintf(stream, ": %" PRIu64, program->values[name.place]);
	}
	return true;
}
