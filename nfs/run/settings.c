#include "run/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void setting_names(const struct nf_kind *kind, char *names, size_t size)
{
	size_t n = 0;

	names[0] = '\0';
	for (unsigned int i = 0; i < kind->n_parameters && n < size; i++)
		n += (size_t)snprintf(names + n, size - n, "%s%s", i ? ", " : "",
				      kind->parameters[i].name);
}

static const struct nf_parameter *parameter_of(const struct nf_kind *kind, const char *name)
{
	for (unsigned int i = 0; i < kind->n_parameters; i++)
		if (strcmp(kind->parameters[i].name, name) == 0)
			return &kind->parameters[i];
	return NULL;
}

static bool is_set(const struct chain_function *function, const char *name)
{
	for (unsigned int i = 0; i < function->n_settings; i++)
		if (strcmp(function->settings[i].name, name) == 0)
			return true;
	return false;
}

/* A number in the parameter's range; false after writing what is wrong. */
static bool number(const struct nf_parameter *parameter, const char *text, double *value,
		   char *why, size_t size)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	if (end == text || *end != '\0' || errno == ERANGE)
		snprintf(why, size, "%s: \"%s\" is not a number", parameter->name, text);
	else if (!(*value >= parameter->low && *value <= parameter->high))
		snprintf(why, size, "%s: %s is outside [%g, %g]", parameter->name, text,
			 parameter->low, parameter->high);
	else
		return true;
	return false;
}

bool setting_add(struct chain_function *function, char *text, char *why, size_t size)
{
	const struct nf_parameter *parameter;
	struct nf_setting setting = {0};
	char *value = strchr(text, '=');

	if (!value || value == text) {
		snprintf(why, size, "\"%s\" is not KEY=VALUE", text);
		return false;
	}
	*value++ = '\0';
	parameter = parameter_of(function->kind, text);
	if (!parameter) {
		snprintf(why, size, "%s has no parameter %s", function->kind->name, text);
		return false;
	}
	if (is_set(function, text)) {
		snprintf(why, size, "%s is set twice", text);
		return false;
	}
	setting.name = parameter->name;
	if (parameter->text)
		setting.text = value;
	else if (!number(parameter, value, &setting.value, why, size))
		return false;
	function->settings[function->n_settings++] = setting;
	return true;
}
