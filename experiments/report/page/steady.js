// SPDX-License-Identifier: BSD-3-Clause
// One minibatch of a run, as a picture that needs no canvas.

// The window of a steady minibatch: [from, to], from the first forward of a minibatch to the first forward of the
// next one, so that each rank has one minibatch's worth of actions. Of all such windows the one of median length is
// taken, the middle one if several have that length; the first and the last minibatch count only if there are no others.
function steadyWindow(rows, microbatches, end) {
  const starts = new Map();
  for (const row of rows)
    for (const a of row)
      if (a.letter === 'F' && !a.goesOn && a.start < end) {
        const batch = Math.floor(a.microbatch / microbatches);
        starts.set(batch, Math.min(starts.get(batch) ?? Infinity, a.start));
      }
  const times = [...starts].sort((a, b) => a[0] - b[0]).map(([, start]) => start);
  let windows = times.slice(1).map((to, i) => [times[i], to]).filter(([from, to]) => to > from);
  if (windows.length > 1) windows = windows.slice(1);
  if (windows.length === 0) return [times[0] ?? 0, end];
  const length = ([from, to]) => to - from, sorted = windows.map(length).sort((a, b) => a - b), median = sorted[(sorted.length - 1) >> 1];
  const same = windows.filter(window => length(window) === median);
  return same[same.length >> 1];
}

// Heights of a rank and of its bar in the picture, in units of the picture.
const rankHeight = 10, barHeight = 8;

// The picture's paths by kind of action: bars of all ranks, `from` at 0.
function steadyPaths(rows, [from, to]) {
  const paths = new Map();
  const add = (letter, start, end, top, height) => paths.set(letter, (paths.get(letter) || '')
    + `M${start} ${top}h${end - start}v${height}h${start - end}z`);
  rows.forEach((row, rank) => {
    for (const a of row) {
      const start = Math.max(a.start, from) - from, end = Math.min(a.end, to) - from, top = rank * rankHeight + (rankHeight - barHeight) / 2;
      if (end <= start) continue;
      if (a.second) { // a pair that ran as one: half of each
        add(a.letter, start, end, top, barHeight / 2);
        add(a.second.letter, start, end, top + barHeight / 2, barHeight / 2);
      } else {
        add(a.letter, start, end, top, barHeight);
      }
    }
  });
  return paths;
}

// Draws a window on an axis from 0 to `most` nanoseconds.
function drawSteady(rows, window, most, ticks, parent) {
  const [from, to] = window, tall = rows.length * rankHeight;
  const picture = shape('svg', {viewBox: `0 0 ${most} ${tall}`, preserveAspectRatio: 'none', class: 'steady', role: 'img'}, parent);
  picture.style.height = Math.round(Math.min(110, Math.max(30, 7 * rows.length))) + 'px';
  const bars = rows.reduce((sum, row) => sum + row.filter(a => a.end > from && a.start < to).length, 0) / rows.length;
  if (bars * most / (to - from) > 130) picture.classList.add('dense'); // bars without lines between them
  shape('path', {d: ticks.map(t => `M${t} 0v${tall}`).join(''), class: 'tick'}, picture);
  shape('path', {d: rows.map((_, rank) => `M0 ${rank * rankHeight + 1}h${to - from}v${barHeight}h${from - to}z`).join(''), class: 'hole'}, picture);
  for (const [letter, d] of steadyPaths(rows, window)) shape('path', {d, fill: colours[letter], class: 'bars', 'data-kind': letter}, picture);
  return picture;
}
