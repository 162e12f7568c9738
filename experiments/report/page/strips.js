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
      const alive = new Map(row.map(a => [placeOf(a), 1]));
      const result = [[0, alive.size]];
      let sum = alive.size;
      for (const a of row) {
        const key = placeOf(a);
        if (a.isPart || a.ofExpert || a.alive === alive.get(key)) continue;
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
