/*
 * The tables of one streaming multiprocessor (SM): assignment table, execution table, and who
 * leads. gpu/host/tables.h has the layout, gpu/host/persistent.h the code that this is a model of.
 *
 * Memory is weak: a plain store waits in a buffer of its process, and reaches memory at any later
 * time, in any order, but at the latest with the next store that has release order. Each -DDROP_...
 * leaves out one thing that the protocol needs; Spin must then find an error.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef EXECUTORS
#define EXECUTORS 2
#endif
#ifndef TASKS
#define TASKS 2 /* of each worker */
#endif
#ifndef PARTS
#define PARTS 2 /* of each task: one executor each */
#endif
#define ALL ((1 << PARTS) - 1)
#define NONE 255

/* assignment table: `posted` is the worker's, `done` the executors' */
byte posted[WORKERS], done[WORKERS];
byte fields[WORKERS]; /* what is in the fields of the task: its sequence number */
byte bell;            /* tasks posted on this SM, so that a leader need not read the whole table */

/* execution table: the leader's while idle, the executor's while assigned */
mtype = {idle, assigned};
mtype status[EXECUTORS] = idle;
byte entry_worker[EXECUTORS], entry_part[EXECUTORS];

/* the leader's, kept from one leader to the next */
bit led, closed;
byte heard;    /* how often the bell had rung before the last round */
bit unfinished; /* the last round ran out of idle executors */
byte taken[WORKERS], cursor[WORKERS];
byte left[WORKERS];

bit stop;
byte finished; /* workers */

/* outputs of parts, as the worker sees them: the sequence number of the task */
byte out[WORKERS * PARTS];
/* what executors have served of the current task of a worker */
byte served[WORKERS];

/* stores on their way to memory */
bit fields_wait[WORKERS];
byte fields_new[WORKERS];
bit out_wait[EXECUTORS];
byte out_at[EXECUTORS], out_new[EXECUTORS];
bit entry_wait[EXECUTORS]; /* of the entry's fields, by the leader */
byte entry_worker_new[EXECUTORS], entry_part_new[EXECUTORS];

inline reach_fields(w)
{
	if
	:: fields_wait[w] -> fields[w] = fields_new[w]; fields_wait[w] = 0; fields_new[w] = 0
	:: else
	fi
}

inline reach_out(e)
{
	if
	:: out_wait[e] ->
		out[out_at[e]] = out_new[e];
		out_wait[e] = 0; out_at[e] = 0; out_new[e] = 0
	:: else
	fi
}

inline reach_entry(e)
{
	if
	:: entry_wait[e] ->
		entry_worker[e] = entry_worker_new[e]; entry_part[e] = entry_part_new[e];
		entry_wait[e] = 0; entry_worker_new[e] = 0; entry_part_new[e] = 0
	:: else
	fi
}

#define REACHING(e)                                                                                \
	:: atomic { out_wait[e] -> reach_out(e) }                                                  \
	:: atomic { entry_wait[e] -> reach_entry(e) }

/* stores reach memory at any time */
active proctype memory()
{
end:	do
	:: atomic { fields_wait[0] -> reach_fields(0) }
#if WORKERS > 1
	:: atomic { fields_wait[1] -> reach_fields(1) }
#endif
	REACHING(0)
#if EXECUTORS > 1
	REACHING(1)
#endif
#if EXECUTORS > 2
	REACHING(2)
#endif
	od
}

proctype worker(byte w)
{
	byte task = 1, i;

	do
	:: task <= TASKS ->
#ifdef DROP_RING_AFTER_POST
		bell++;
#endif
		/* a slot in use is not written */
		atomic { assert(!fields_wait[w]); fields_new[w] = task; fields_wait[w] = 1 }
		atomic {
#ifndef DROP_RELEASE_OF_POST
			reach_fields(w);
#endif
			posted[w] = task
		};
#ifndef DROP_RING_AFTER_POST
		bell++;
#endif
#ifndef DROP_WAIT_FOR_DONE
		done[w] == task;
#endif
		atomic {
			/* served once each, and outputs are there with `done` */
			assert(served[w] == ALL);
			served[w] = 0;
			i = 0;
			do
			:: i < PARTS -> assert(out[w * PARTS + i] == task); i++
			:: else -> break
			od;
			i = 0;
			task++
		}
	:: else -> break
	od;
	finished++
}

/* stop at any time after the last task has been posted: what is posted is served */
proctype host()
{
	bell == WORKERS * TASKS;
	stop = 1
}

/* hand a part to an executor whose entry is idle */
inline assign(to, w)
{
	atomic {
#ifndef DROP_CHECK_OF_IDLE
		assert(status[to] == idle);
#endif
		/* the entry is nobody else's */
		assert(!entry_wait[to]);
		entry_worker_new[to] = w; entry_part_new[to] = cursor[w]; entry_wait[to] = 1
	};
	atomic {
#ifndef DROP_RELEASE_OF_ASSIGNED
		reach_entry(to);
#endif
		status[to] = assigned;
		cursor[w]++
	}
}

/* an idle executor: others first, so that the leader can go on leading */
inline find_idle(to, self)
{
	to = 0;
	do
	:: to == EXECUTORS -> to = self; break
#ifndef DROP_CHECK_OF_IDLE
	:: to < EXECUTORS && to != self && status[to] == idle -> break
	:: to < EXECUTORS && !(to != self && status[to] == idle) -> to++
#else
	:: to < EXECUTORS && to != self -> break
	:: to < EXECUTORS && to == self -> to++
#endif
	od;
#ifndef DROP_CHECK_OF_IDLE
	if
	:: status[to] == idle
	:: else -> to = NONE
	fi
#endif
}

/* one round over the assignment table */
inline lead(self)
{
#ifndef DROP_ACQUIRE_OF_STOP
	stopping = stop;
#endif
	drained = 1;
#ifdef DROP_ACQUIRE_OF_BELL
	/* what is posted may be read before the bell */
	do
	:: w < WORKERS -> old[w] = posted[w]; w++
	:: else -> break
	od;
#endif
	rung = bell;
	w = 0;
	do
	:: w < WORKERS && (rung != heard || unfinished) ->
#ifndef DROP_ACQUIRE_OF_BELL
		seen = posted[w];
#else
		seen = old[w];
#endif
		do
#ifndef DROP_SEQUENCE_NUMBERS
		:: seen != taken[w] ->
#else
		:: seen != done[w] ->
#endif
			find_idle(to, self);
			if
			:: to == NONE -> drained = 0; break
			:: else
			fi;
			if
			:: cursor[w] == 0 ->
				/* the fields of the task are there with `posted` */
				assert(fields[w] == seen);
				left[w] = PARTS
			:: else
			fi;
			assign(to, w);
#ifdef DROP_COPY_OF_TASK
			/* how many parts there are is read again */
			assert(fields[w] == seen);
#endif
			if
			:: cursor[w] == PARTS -> atomic { cursor[w] = 0; taken[w] = seen }
			:: else
			fi
		:: else -> break
		od;
		w++
	:: else -> break
	od;
	atomic {
		heard = rung;
#ifndef DROP_UNFINISHED
		unfinished = !drained;
#endif
		w = 0; to = 0; seen = 0; rung = 0
	};
#ifdef DROP_ACQUIRE_OF_STOP
	stopping = stop;
#endif
	if
	:: stopping && drained -> closed = 1
	:: else
	fi;
	stopping = 0
}

/* the entry is the executor's; the task is served once, and the last part says so */
inline serve(self)
{
	atomic {
		w = entry_worker[self];
		part = entry_part[self];
		assert(w < WORKERS && part < PARTS);
		assert(done[w] < posted[w]);
		assert(!(served[w] & (1 << part)));
		served[w] = served[w] | (1 << part);
		assert(!out_wait[self]);
		out_at[self] = w * PARTS + part; out_new[self] = fields[w]; out_wait[self] = 1
	};
	atomic {
#ifndef DROP_RELEASE_OF_COUNT
		reach_out(self);
#endif
		assert(left[w] > 0);
		left[w]--;
		last = (left[w] == 0)
	};
	if
	:: last -> done[w]++; last = 0
	:: else
	fi;
	atomic { w = 0; part = 0; reach_out(self); entry_worker[self] = NONE; status[self] = idle }
}

proctype executor(byte self)
{
	byte w, to, seen, part, rung;
#ifdef DROP_ACQUIRE_OF_BELL
	byte old[WORKERS];
#endif
	bit stopping, drained, last, ended;

	do
	:: status[self] == assigned -> serve(self)
	:: status[self] != assigned ->
		ended = closed;
		if
		:: ended ->
#ifndef DROP_SECOND_LOOK
			if
			:: status[self] == assigned -> ended = 0; serve(self)
			:: else -> break
			fi
#else
			break
#endif
		:: else ->
			if
#ifndef DROP_LEADERSHIP
			:: atomic { !led -> led = 1 };
#else
			:: true ->
#endif
				/* the role may have changed hands since `closed` was read */
				do
#ifndef DROP_HANDOVER
				:: closed || status[self] == assigned -> break
#else
				:: closed -> break
#endif
				:: else -> lead(self)
				od;
				led = 0
			:: led
			fi
		fi
	od;
	ended = 0
}

init {
	byte i;

	atomic {
		i = 0;
		do
		:: i < WORKERS -> run worker(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < EXECUTORS -> run executor(i); i++
		:: else -> break
		od;
		run host();
		i = 0
	};
	/* shutdown drains: everything ends, and no task is left */
	_nr_pr == 2;
	assert(finished == WORKERS)
}

/* no wakeup is lost: under weak fairness every worker finishes */
ltl served_in_the_end { <> (finished == WORKERS) }
