#include "core/command_line.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_OPTIONS 32

enum { HELP = 256, FIRST };

const char *command_line_number(const char *value, unsigned int least, unsigned int most,
				unsigned int *number)
{
	static char why[64];
	char *end;
	const double read = strtod(value, &end);

	if (isdigit((unsigned char)*value) && *end == '\0' && read >= least && read <= most &&
	    read == (unsigned int)read) {
		*number = (unsigned int)read;
		return NULL;
	}
	snprintf(why, sizeof(why), "is not a whole number from %u to %u", least, most);
	return why;
}

static const char *take_real(const struct command_option *option, const char *value)
{
	char *end;
	const double real = strtod(value, &end);

	if (end == value || *end != '\0' || !(real > 0) || real >= 1e15)
		return "is not a number above 0 and below 1e15";
	*option->real = real;
	return NULL;
}

static const char *take_option(const struct command_line *line, const struct command_option *option,
			       char *value)
{
	if (option->take)
		return option->take(line->state, value);
	if (option->number)
		return command_line_number(value, option->least, option->most, option->number);
	if (option->real)
		return take_real(option, value);
	if (option->flag)
		*option->flag = true;
	else
		*option->text = value;
	return NULL;
}

/* What was wrong: `hinted` counts faults that were printed with their own hint. */
struct faults {
	unsigned int named, hinted;
};

/* Name a fault; `why` as of what takes values. */
static void note(struct faults *faults, const char *program, const char *option, const char *value,
		 const char *why)
{
	if (!why)
		return;
	faults->named += *why != '\0';
	faults->hinted += *why == '\0';
	if (*why && option)
		fprintf(stderr, "%s: --%s: \"%s\" %s\n", program, option, value, why);
	else if (*why)
		fprintf(stderr, "%s: %s: %s\n", program, value, why);
}

int command_line_read(const struct command_line *line, int argc, char **argv)
{
	struct option known[MOST_OPTIONS + 2] = {{"help", no_argument, NULL, HELP}};
	struct faults faults = {0};
	int found;

	for (int i = 0; i < MOST_OPTIONS && line->options[i].name; i++)
		known[i + 1] = (struct option){
			.name = line->options[i].name,
			.has_arg = line->options[i].flag ? no_argument : required_argument,
			.val = FIRST + i,
		};
	while ((found = getopt_long(argc, argv, "", known, NULL)) != -1) {
		const struct command_option *option;

		if (found == HELP) {
			fputs(line->help, stdout);
			return 0;
		}
		if (found < FIRST) { /* getopt_long() has printed why */
			faults.named++;
			continue;
		}
		option = &line->options[found - FIRST];
		note(&faults, line->program, option->name, optarg,
		     take_option(line, option, optarg));
	}
	for (; optind < argc; optind++)
		note(&faults, line->program, NULL, argv[optind],
		     line->take_argument ? line->take_argument(line->state, argv[optind])
					 : "arguments are options");
	for (const struct command_option *option = line->options; option->name; option++)
		if (option->needed && !*option->text) {
			fprintf(stderr, "%s: --%s is needed\n", line->program, option->name);
			faults.named++;
		}
	if (faults.named > 0)
		fprintf(stderr, "hint: %s --help lists the options\n", line->program);
	return faults.named + faults.hinted > 0 ? 2 : COMMAND_LINE_READ;
}
