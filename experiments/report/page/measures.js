// SPDX-License-Identifier: BSD-3-Clause
// Measures of a run of results.json, by the formulas of docs/results.md.

// Samples of a step; 0 in a simulation.
const batchOf = ({data: read}) => read ? read.batch : 0;

// Number of last samples over which the table's losses are means; 0 without losses.
function samplesOfLoss({data: read, runs}) {
  const batch = batchOf({data: read});
  return Math.max(0, ...runs.filter(run => run.loss && run.loss.length > 0).map(run => {
    const ends = run.loss_samples, before = ends.length > 1 ? ends[ends.length - 2] : run.steps_before * batch;
    return Math.max(batch, ends[ends.length - 1] - before);
  }));
}

// Mean loss of the last samples; null if there are none. The oldest loss counts with the missing samples alone.
function lastLoss(run, batch, samples) {
  if (!run.loss) return null;
  let sum = 0, count = 0;
  for (let i = run.loss.length - 1; i >= 0 && count < samples; --i) {
    if (!isNumber(run.loss[i])) return null;
    const part = Math.min(run.loss_samples[i] - (i > 0 ? run.loss_samples[i - 1] : run.steps_before * batch), samples - count);
    sum += run.loss[i] * part;
    count += part;
  }
  return count > 0 ? sum / count : null;
}

// Whether idle times and seconds are those of the schedule.
const hasOwnTimes = run => run.timing !== 'shared' && run.ending !== 'failed';

const largest = numbers => numbers && numbers.length > 0 ? Math.max(...numbers) : null;
const inMebibytes = bytes => isNumber(bytes) ? bytes / 2 ** 20 : null;
const peakBytes = run => largest(run.peak_bytes);
const bytesMoved = run => run.bytes_moved ? sumOf(Object.values(run.bytes_moved)) : null;

// Most activations that a rank holds, in microbatches of all stages of a rank.
function heldMicrobatches(run) {
  return run.peak_activations && run.peak_activations.length > 0 ? Math.max(...run.peak_activations) * run.pipeline_ranks / run.stages : null;
}
