/* Parameters of functions and benches: named numbers with a range, or texts. */
#pragma once

struct nf_parameter {
	const char *name;
	const char *help;
	double low, high, default_value; /* of a number */
	const char *text;                /* default of a text; NULL for a number */
};

/* A parameter with a value other than its default. */
struct nf_setting {
	const char *name;
	double value;
	const char *text; /* of a text parameter; NULL for a number */
};

/*
 * Set each value to its default or setting. 0, or a negative errno after printing which setting of
 * `of` is unknown, of the wrong kind, or out of range.
 */
int nf_apply_settings(const char *of, const struct nf_parameter *parameters,
		      unsigned int n_parameters, const struct nf_setting *settings,
		      unsigned int n_settings, double *values);

/* The text of each text parameter, as set or its default; NULL for numbers. */
void nf_apply_texts(const struct nf_parameter *parameters, unsigned int n_parameters,
		    const struct nf_setting *settings, unsigned int n_settings,
		    const char **texts);
