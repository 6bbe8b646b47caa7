#include "core/parameters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int apply_setting(const char *of, const struct nf_parameter *parameters,
			 unsigned int n_parameters, const struct nf_setting *setting,
			 double *values)
{
	for (unsigned int i = 0; i < n_parameters; i++) {
		const struct nf_parameter *parameter = &parameters[i];

		if (strcmp(parameter->name, setting->name) != 0)
			continue;
		if (!parameter->text != !setting->text) {
			fprintf(stderr, "%s: %s must be a %s\n", of, setting->name,
				parameter->text ? "text" : "number");
			return -EINVAL;
		}
		if (parameter->text)
			return 0;
		if (!(setting->value >= parameter->low && setting->value <= parameter->high)) {
			fprintf(stderr, "%s: %s %g is outside [%g, %g]\n", of, setting->name,
				setting->value, parameter->low, parameter->high);
			return -ERANGE;
		}
		values[i] = setting->value;
		return 0;
	}
	fprintf(stderr, "%s: has no parameter %s\n", of, setting->name);
	return -EINVAL;
}

int nf_apply_settings(const char *of, const struct nf_parameter *parameters,
		      unsigned int n_parameters, const struct nf_setting *settings,
		      unsigned int n_settings, double *values)
{
	int result = 0;

	for (unsigned int i = 0; i < n_parameters; i++)
		values[i] = parameters[i].default_value;
	for (unsigned int i = 0; i < n_settings && result == 0; i++)
		result = apply_setting(of, parameters, n_parameters, &settings[i], values);
	return result;
}

void nf_apply_texts(const struct nf_parameter *parameters, unsigned int n_parameters,
		    const struct nf_setting *settings, unsigned int n_settings,
		    const char **texts)
{
	for (unsigned int i = 0; i < n_parameters; i++) {
		texts[i] = parameters[i].text;
		for (unsigned int j = 0; parameters[i].text && j < n_settings; j++)
			if (strcmp(parameters[i].name, settings[j].name) == 0)
				texts[i] = settings[j].text;
	}
}
