#include "tables/rule_file.h"

#include <stdlib.h>
#include <string.h>

#include "tables/table_file.h"

static const char hint[] = "CLASS EXPRESSION, as `web GET /admin[^ ]* HTTP/1`; CLASS is "
			   "peer-to-peer, remote, chat, mail, media, store, web or network";

static const char *const classes[RULE_CLASSES] = {
	[RULE_PEER_TO_PEER] = "peer-to-peer", [RULE_REMOTE] = "remote", [RULE_CHAT] = "chat",
	[RULE_MAIL] = "mail",                 [RULE_MEDIA] = "media",   [RULE_STORE] = "store",
	[RULE_WEB] = "web",                   [RULE_NETWORK] = "network",
};

static bool find_class(const char *name, enum rule_class *class)
{
	for (*class = 0; *class < RULE_CLASSES; (*class)++)
		if (strcmp(name, classes[*class]) == 0)
			return true;
	return false;
}

/* Check a line; false after printing what is wrong with it. */
static bool check(struct table_file *file, const char *expression, rule_fault fault,
		  enum rule_class *class)
{
	char *why;

	if (!find_class(file->words[0], class)) {
		table_fault(file, "%s: not a class", file->words[0]);
		return false;
	}
	if (!*expression) {
		table_fault(file, "no expression");
		return false;
	}
	why = fault(expression);
	if (why)
		table_fault(file, "%s: %s", expression, why);
	free(why);
	return !why;
}

/* Append a rule; false without memory. */
static bool append(struct rule_set *set, enum rule_class class, const char *expression)
{
	struct rule *rules = (struct rule *)(uintptr_t)set->rules;
	char *copy = strdup(expression);

	/* room doubles at powers of two */
	if (copy && (set->n & (set->n - 1)) == 0)
		rules = realloc(rules, (set->n ? 2 * set->n : 1) * sizeof(*rules));
	if (!copy || !rules) {
		free(copy);
		return false;
	}
	rules[set->n++] = (struct rule){.name = copy, .class = class, .expression = copy};
	set->rules = rules;
	return true;
}

void rule_file_free(struct rule_set *set)
{
	for (unsigned int i = 0; i < set->n; i++)
		free((void *)(uintptr_t)set->rules[i].expression);
	free((void *)(uintptr_t)set->rules);
	*set = (struct rule_set){0};
}

/* Read all lines; false without memory. */
static bool read_rules(struct table_file *file, rule_fault fault, struct rule_set *set)
{
	enum rule_class class;
	char *expression;

	while (table_file_next_text(file, &expression)) {
		if (set->n == RULES_MOST) {
			table_fault(file, "more than %d rules", RULES_MOST);
			return true;
		}
		if (check(file, expression, fault, &class) && !append(set, class, expression)) {
			fprintf(stderr, "%s: no memory for the rules of %s\n", file->of,
				file->path);
			return false;
		}
	}
	if (set->n == 0 && file->faults == 0)
		table_fault(file, "no rules");
	return true;
}

bool rule_file_read(const char *of, const char *path, rule_fault fault, struct rule_set *set)
{
	struct table_file file;
	bool good;

	*set = (struct rule_set){0};
	if (!table_file_open(&file, of, path, hint))
		return false;
	good = read_rules(&file, fault, set);
	good = table_file_close(&file) && good;
	if (!good)
		rule_file_free(set);
	return good;
}
