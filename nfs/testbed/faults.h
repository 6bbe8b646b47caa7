/* All faults of a request, for one error message. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

struct faults {
	unsigned int n;
	size_t length;
	char text[2048]; /* separated by "; "; truncated when full */
};

__attribute__((format(printf, 2, 3))) static inline void fault(struct faults *faults,
							       const char *format, ...)
{
	va_list values;
	int n = 0;

	if (faults->n++ > 0 && faults->length + 2 < sizeof(faults->text)) {
		snprintf(faults->text + faults->length, 3, "; ");
		faults->length += 2;
	}
	va_start(values, format);
	n = vsnprintf(faults->text + faults->length, sizeof(faults->text) - faults->length, format,
		      values);
	va_end(values);
	faults->length += n > 0 ? (size_t)n : 0;
	if (faults->length >= sizeof(faults->text))
		faults->length = sizeof(faults->text) - 1;
}
