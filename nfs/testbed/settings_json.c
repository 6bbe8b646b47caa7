#include "testbed/settings_json.h"

#include <math.h>
#include <string.h>

#include "core/nf.h"
#include "testbed/load.h"
#include "testbed/names.h"

double number_read(const json_t *object, const struct nf_parameter *parameter, const char *of,
		   struct faults *faults)
{
	const json_t *given = json_object_get(object, parameter->name);
	const double value = json_number_value(given);

	if (!given)
		fault(faults, "%s needs %s", of, parameter->name);
	else if (!json_is_number(given))
		fault(faults, "%s: %s is not a number", of, parameter->name);
	else if (!(value >= parameter->low && value <= parameter->high))
		fault(faults, "%s: %s %g is outside [%g, %g]", of, parameter->name, value,
		      parameter->low, parameter->high);
	else
		return value;
	return parameter->low; /* which any type can hold */
}

static void add(struct settings *settings, const char *name, double value)
{
	if (*settings->n < NF_MOST_PARAMETERS)
		settings->list[(*settings->n)++] =
			(struct nf_setting){.name = name, .value = value};
}

static void refuse_unknown(const json_t *given, const struct settings *settings,
			   struct faults *faults)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)given, name, value)
	{
		unsigned int i = 0;

		while (i < settings->n_parameters &&
		       strcmp(settings->parameters[i].name, name) != 0)
			i++;
		if (i == settings->n_parameters)
			fault(faults, "%s has no parameter %s", settings->of, name);
	}
}

void settings_read(const json_t *given, struct settings *settings, struct faults *faults)
{
	if (given && !json_is_object(given)) {
		fault(faults, "%s: parameters are not an object", settings->of);
		return;
	}
	for (unsigned int i = 0; i < settings->n_parameters; i++) {
		const struct nf_parameter *parameter = &settings->parameters[i];
		const bool needed = settings->needs_offered && offered_parameter(parameter->name);

		if (needed || json_object_get(given, parameter->name))
			add(settings, parameter->name,
			    number_read(given, parameter, settings->of, faults));
	}
	refuse_unknown(given, settings, faults);
}

void settings_size_tables(const json_t *given, struct settings *settings, uint32_t flows)
{
	for (unsigned int i = 0; i < settings->n_parameters; i++) {
		const struct nf_parameter *parameter = &settings->parameters[i];

		if (is_flow_table(parameter->name) && !json_object_get(given, parameter->name))
			add(settings, parameter->name,
			    fmin(fmax(2.0 * flows, parameter->low), parameter->high));
	}
}

json_t *settings_json(const struct nf_setting *list, unsigned int n)
{
	json_t *parameters = json_object();

	for (unsigned int i = 0; i < n; i++)
		json_object_set_new(parameters, list[i].name, json_real(list[i].value));
	return parameters;
}
