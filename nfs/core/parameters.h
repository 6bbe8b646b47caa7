/* Parameters of functions and benches: named numbers in a range. */
#ifndef NFS_CORE_PARAMETERS_H
#define NFS_CORE_PARAMETERS_H

struct nf_parameter {
	const char *name;
	const char *help;
	double low, high, default_value;
};

/* A parameter other than its usual value. */
struct nf_setting {
	const char *name;
	double value;
};

/*
 * The value of each parameter, usual or set. 0, or a negative errno after printing on stderr what
 * `of` does not have or cannot be.
 */
int nf_apply_settings(const char *of, const struct nf_parameter *parameters,
		      unsigned int n_parameters, const struct nf_setting *settings,
		      unsigned int n_settings, double *values);

#endif
