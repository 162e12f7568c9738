// SPDX-License-Identifier: BSD-3-Clause
const placeOf = a => `${a.pipeline} ${a.stage}`;

// What can stand under each rank: a curve over its actions, as steps [time, value].
const strips = {
  held: {
    text: 'stage-microbatches held',
    steps(row) {
      const result = [];
      let held = 0;
      for (const a of row) {
        if (a.ofExpert) continue;
        if (a.letter === 'F' && !a.goesOn) result.push([a.start, ++held]);
        if ('BW'.includes(a.letter) && !a.isPart) result.push([a.end, --held]);
      }
      return result;
    },
  },
  versions: {
    text: 'weight versions alive',
    steps(row) {
      const whole = row.filter(a => !a.isPart && !a.ofExpert);
      // A run that goes on begins with several.
      const alive = new Map(whole.map(a => [placeOf(a), a.alive]).reverse());
      let sum = [...alive.values()].reduce((a, b) => a + b, 0);
      const result = [[0, sum]];
      for (const a of whole) {
        const key = placeOf(a);
        if (a.alive === alive.get(key)) continue;
        sum += a.alive - alive.get(key);
        alive.set(key, a.alive);
        result.push([a.end, sum]);
      }
      return result;
    },
  },
  behind: {
    text: 'versions made since the forward’s',
    steps(row) {
      const newest = new Map(), read = new Map(), result = [];
      for (const a of row) {
        const key = placeOf(a), made = Math.max(newest.get(key) ?? a.version, a.version);
        newest.set(key, made);
        if (a.letter === 'U') continue;
        const of = `${key} ${a.microbatch}`;
        if (a.letter === 'F') read.set(of, a.version);
        const lag = made - (read.get(of) ?? a.version);
        if (lag > 0) result.push([a.start, lag], [a.end, 0]);
      }
      return result;
    },
  },
};

// The curve at a time.
function valueAt(steps, time) {
  let low = 0, high = steps.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (steps[half][0] <= time) low = half + 1; else high = half;
  }
  return low > 0 ? steps[low - 1][1] : 0;
}
