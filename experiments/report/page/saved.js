// SPDX-License-Identifier: BSD-3-Clause
// Files that a timeline can be saved as.

// Its actions, in milliseconds.
function csvOf({rows, plan, name}) {
  const lines = ['rank,action,stage,microbatch,pipeline,start_ms,end_ms,version,planned_start_ms'];
  const ms = ns => (ns / 1e6).toFixed(6);
  for (const row of rows)
    for (const a of row) {
      const planned = plan && !a.goesOn ? plan.planned.get(plan.key(a)) : undefined;
      lines.push([a.rank, a.letter, a.stage, a.microbatch, a.pipeline, ms(a.start), ms(a.end), a.version ?? '',
        planned ? ms(planned.start) : ''].join(','));
    }
  return lines.join('\n') + '\n';
}

// A trace in the JSON that Perfetto and chrome://tracing open, times in microseconds.
function traceOf({rows, text, severalStages}) {
  const events = [{ph: 'M', pid: 0, name: 'process_name', args: {name: text}}];
  rows.forEach((row, rank) => {
    events.push({ph: 'M', pid: 0, tid: rank, name: 'thread_name', args: {name: 'rank ' + rank}});
    for (const a of row)
      events.push({ph: 'X', pid: 0, tid: rank, name: nameOf({...a, second: undefined}, severalStages), ts: a.start / 1000, dur: (a.end - a.start) / 1000,
        args: {stage: a.stage, microbatch: a.microbatch, ...(a.version === undefined ? {} : {version: a.version})}});
  });
  return JSON.stringify({displayTimeUnit: 'ms', traceEvents: events});
}
