/*
 * The gate of one direction of the bus: whose transfer is next. gpu/host/gate.c is the code.
 *
 * Workers ask, poll, transfer, and release. Among those that wait, the smallest order is next, and a
 * transfer that has begun is not interrupted; an order may change while its worker waits. Each
 * -DDROP_... leaves out one thing that the gate needs; Spin must then find an error.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef TRANSFERS
#define TRANSFERS 2 /* of each worker */
#endif
#define NONE 255

bit locked, busy;
byte order[WORKERS];
bit waiting[WORKERS], granted[WORKERS];
byte transferring, finished;

inline lock()
{
#ifndef DROP_LOCK
	atomic { !locked -> locked = 1 }
#else
	skip
#endif
}

/* the smallest order among those that wait, if the bus is free */
inline grant(first, i)
{
	if
#ifndef DROP_BUSY
	:: !busy ->
#else
	:: true ->
#endif
		first = NONE;
		i = 0;
		do
		:: i < WORKERS ->
			if
			:: waiting[i] && (first == NONE || order[i] < order[first]) -> first = i
			:: else
			fi;
			i++
		:: else -> break
		od;
		if
		:: first != NONE ->
			busy = 1;
			atomic {
				/* nobody with a smaller order waits: who asks later, waits */
				i = 0;
				do
				:: i < WORKERS ->
					assert(i == first || !waiting[i] || order[first] < order[i]);
					i++
				:: else -> break
				od;
				i = 0;
				waiting[first] = 0;
				granted[first] = 1;
				first = 0
			}
		:: else -> i = 0; first = 0
		fi
	:: busy
	fi
}

proctype worker(byte self)
{
	byte n, first, i;

	do
	:: n < TRANSFERS ->
		lock();
		waiting[self] = 1;
#ifndef DROP_GRANT_AT_REQUEST
		grant(first, i);
#endif
		locked = 0;
		granted[self] == 1;
		granted[self] = 0;
		transferring++;
		assert(transferring == 1);
		transferring--;
		lock();
		busy = 0;
#ifndef DROP_GRANT_AT_RELEASE
		grant(first, i);
#endif
		locked = 0;
		n++
	:: else -> break
	od;
	finished++
}

/* two workers swap orders at any time */
proctype scheduler()
{
	byte kept;

	lock();
#ifdef DROP_LOCK
	kept = order[0]; order[0] = order[1]; order[1] = kept;
#else
	atomic { kept = order[0]; order[0] = order[1]; order[1] = kept };
#endif
	locked = 0
}

init {
	byte i;

	atomic {
		do
		:: i < WORKERS -> order[i] = i; run worker(i); i++
		:: else -> break
		od;
		i = 0;
		run scheduler()
	};
	_nr_pr == 1;
	assert(finished == WORKERS && !busy)
}

/* no request is forgotten: under weak fairness every worker finishes */
ltl granted_in_the_end { <> (finished == WORKERS) }
