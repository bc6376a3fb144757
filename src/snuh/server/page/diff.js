// The differences of two texts, word by word.

const MAX_WORDS = 1_500; // compared of each text, after what both begin and end with

/** Split both texts into pieces [text, isCommon]. */
export function diff(left, right) {
  const [a, b] = [left, right].map((text) => text.match(/\s+|[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? []);
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const common = commonWords(
    a.slice(start, Math.min(a.length - end, start + MAX_WORDS)),
    b.slice(start, Math.min(b.length - end, start + MAX_WORDS)),
  );
  return [a, b].map((words, side) => {
    const inside = new Set(common.map((pair) => pair[side] + start));
    return joined(words, (index) => index < start || index >= words.length - end || inside.has(index));
  });
}

/** A longest common subsequence, as pairs of indices. */
function commonWords(a, b) {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width); // of what follows each pair
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      lengths[at] = a[i] === b[j] ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

function joined(words, isCommon) {
  const pieces = [];
  words.forEach((word, index) => {
    const known = isCommon(index);
    if (pieces.at(-1)?.[1] === known) pieces.at(-1)[0] += word;
    else pieces.push([word, known]);
  });
  return pieces;
}
