// SPDX-License-Identifier: BSD-3-Clause
// The numbers of all runs in a table, and the text that the terminal printed.

// A number with a bar of a share of the width behind it.
function bar(parent, share, text) {
  parent.classList.add('number');
  parent.style.setProperty('--share', (100 * Math.min(1, Math.max(0, share))).toFixed(2) + '%');
  parent.textContent = text;
}

// Columns of results: {head, title, value(run), text(number, run), better, whole: the value of a full bar, or true for the largest}
function resultColumns({data: read, runs}) {
  const done = runs.filter(run => run.ending !== 'failed'), times = unitOfTime(done.map(run => run.makespan));
  const meanIdle = run => run.idle && run.idle.length > 0 ? sumOf(run.idle) / run.idle.length : null;
  const inUnits = seconds => fixed(seconds * times.of, 3), count = String, samples = samplesOfLoss({data: read, runs});
  const bytesText = of => {
    const digits = decimalsOf(done.map(run => of(run) / 2 ** 20), 1);
    return bytes => fixed(bytes / 2 ** 20, digits);
  };
  const afterTime = runs.length > 1 ? runs.find(run => run.after_shortest)?.after_shortest : undefined, target = runs.find(run => run.target)?.target;
  const loss = x => fixed(x, 4), oneTiming = new Set(done.map(run => run.timing)).size < 2;
  return [
    {head: 'samples/s', title: 'By the run’s clock.', value: run => run.samples_per_second, text: x => fixed(x, 1), better: 'more', whole: true},
    {head: 'tokens/s', title: 'By the run’s clock.', value: run => run.tokens_per_second, text: x => fixed(x, 0), better: 'more'},
    {head: oneTiming ? '' : 'timing', title: 'How times were found.', value: run => run.timing, text: x => x},
    {head: 'makespan ' + times.unit, title: 'End of the last action.', value: run => run.makespan, text: inUnits, better: 'less'},
    {head: 'idle ' + times.unit, title: 'Mean over ranks of makespan − busy time.', value: meanIdle, text: inUnits, better: 'less'},
    {head: 'bubble', title: 'Mean over ranks of idle time / makespan.', value: run => run.bubble, text: percent, better: 'less', whole: 1},
    {head: 'other programs', title: 'Share of the actions’ wall time that other programs took.', value: run => run.other_programs?.share, text: percent, better: 'less'},
    {head: 'activations', title: 'Most stage-microbatches that a rank holds.', value: run => largest(run.peak_activations), text: count, better: 'less'},
    {head: 'memory MiB', title: 'Most memory of a rank.', value: peakBytes, text: bytesText(peakBytes), better: 'less', whole: true},
    {head: 'moved MiB', title: 'Tensors in messages, all ranks together.', value: run => bytesMoved(run) || null, text: bytesText(bytesMoved), better: 'less', whole: true},
    {head: 'versions', title: 'Most weight versions of a stage.', value: run => largest(run.weight_versions), text: count, better: 'less'},
    {head: 'staleness', title: 'Versions between forward and update: the most, and the mean of the stalest stage.', value: run => largest(run.staleness?.mean),
      text: (x, run) => `${largest(run.staleness.max)} (${fixed(x, 2)})`, better: 'less'},
    {head: 'loss', title: `Mean over the last ${samples} samples.`, value: run => lastLoss(run, batchOf({data: read}), samples), text: loss, better: 'less'},
    {head: afterTime ? `loss at ${inUnits(afterTime.seconds)} ${times.unit}` : '', title: 'Mean loss of the last 8 batches, in as much time as the fastest schedule took.',
      value: run => run.after_shortest?.loss, text: loss, better: 'less'},
    {head: target ? `samples to ${fixed(target.loss, 3)}` : '', title: `Until the mean loss of the last 8 batches is at most ${target?.loss}.`,
      value: run => run.target?.samples, text: count, better: 'less'},
    {head: target ? `${times.unit} to ${fixed(target.loss, 3)}` : '', title: 'The same in time, by the run’s clock.', value: run => run.target?.seconds, text: inUnits, better: 'less'},
    {head: 'evaluated', title: 'Loss of the evaluation at the end.', value: run => run.evaluation?.loss, text: loss, better: 'less'},
    {head: 'accuracy', title: 'Share of right predictions at the end.', value: run => run.evaluation?.accuracy, text: percent, better: 'more'},
  ].filter(({head, value}) => head !== '' && done.some(run => value(run) !== null && value(run) !== undefined));
}

function resultsTable(parent) {
  const {results} = data, section = element('section', undefined, parent);
  element('h2', 'Numbers', section);
  const rows = results.runs.map((result, index) => ({result, index, name: (data.runs[index] ? data.runs[index].text : result.schedule)
    + (result.ending === 'finished' ? '' : ` (${result.ending})`)}));
  const columns = resultColumns(results).map(column => {
    const known = row => row.result.ending === 'failed' ? null : column.value(row.result) ?? null;
    const most = column.whole === true ? Math.max(...rows.map(row => known(row) || 0)) : column.whole;
    const text = row => column.text(known(row), row.result), numbered = {...column, numeric: true, value: known, text};
    return column.whole ? {...numbered, draw: (cell, row) => known(row) === null ? cell.append('-') : bar(cell, known(row) / most, text(row))} : numbered;
  });
  const table = new SortedTable(section, [{head: 'schedule', value: ({name}) => name, text: ({name}) => name}, ...columns], rows, {label: 'numbers of the runs'});
  const printed = element('details', undefined, section);
  element('summary', 'as the terminal printed it, with the meaning of each column', printed);
  element('pre', data.table, printed, 'scroll');
  return table;
}
