/* Parameters of functions and benches: named numbers with a range. */
#ifndef NFS_CORE_PARAMETERS_H
#define NFS_CORE_PARAMETERS_H

struct nf_parameter {
	const char *name;
	const char *help;
	double low, high, default_value;
};

/* A parameter with a value other than its default. */
struct nf_setting {
	const char *name;
	double value;
};

/*
 * Set each value to its default or setting. 0, or a negative errno after printing which setting of
 * `of` is unknown or out of range.
 */
int nf_apply_settings(const char *of, const struct nf_parameter *parameters,
		      unsigned int n_parameters, const struct nf_setting *settings,
		      unsigned int n_settings, double *values);

#endif
