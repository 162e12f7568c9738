// SPDX-License-Identifier: BSD-3-Clause
// Colours of schedules, from Okabe and Ito, and their lines in legends.
const lineColours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8c8c00', '#7f7f7f'];
const dashes = [undefined, [12, 4], [4, 4], [12, 4, 4, 4], [2, 6]]; // so that lines differ without their colours, and over one another

const lineColour = index => lineColours[index % lineColours.length];
const lineDash = index => (dashes[index % dashes.length] || []).join(' ');

// A short piece of a schedule's line.
function swatch(index, parent) {
  const picture = shape('svg', {width: 26, height: 10, viewBox: '0 0 26 10', class: 'swatch', 'aria-hidden': 'true'}, parent);
  shape('path', {d: 'M0 5h26', stroke: lineColour(index), 'stroke-width': 3, 'stroke-dasharray': lineDash(index), fill: 'none'}, picture);
  return picture;
}
