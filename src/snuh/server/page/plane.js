// Points in a plane and the window through which they are seen; knows nothing of the page.

const ZOOM_MOST = 80;
const MARGIN = 32; // pixels around everything when all of it is shown
const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

export class Plane {
  width = 1;
  height = 1;

  constructor(x, y) {
    this.x = Float32Array.from(x);
    this.y = Float32Array.from(y);
    this.bounds = { left: least(this.x), right: most(this.x), bottom: least(this.y), top: most(this.y) };
    this.fit();
  }

  /** Pixels a unit. */
  get scale() {
    const { left, right, bottom, top } = this.bounds;
    const across = Math.max(40, this.width - 2 * MARGIN) / Math.max(1e-3, right - left);
    const upright = Math.max(40, this.height - 2 * MARGIN) / Math.max(1e-3, top - bottom);
    return this.zoom * Math.min(across, upright);
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
  }

  toScreen(point) {
    const scale = this.scale;
    return {
      x: (this.x[point] - this.centre.x) * scale + this.width / 2,
      y: (this.centre.y - this.y[point]) * scale + this.height / 2,
    };
  }

  /** Move the window by pixels. */
  pan(right, down) {
    const clamp = (value) => Math.max(-1, Math.min(1, value));
    this.centre.x = clamp(this.centre.x + right / this.scale);
    this.centre.y = clamp(this.centre.y - down / this.scale);
  }

  /** Zoom by a factor while what is at (x, y) of the screen stays there. */
  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.scale;
    this.zoom = Math.max(1, Math.min(ZOOM_MOST, this.zoom * factor));
    const kept = 1 / before - 1 / this.scale;
    this.pan((x - this.width / 2) * kept * this.scale, (y - this.height / 2) * kept * this.scale);
  }

  fit() {
    const { left, right, bottom, top } = this.bounds;
    this.zoom = 1; // everything fits
    this.centre = { x: (left + right) / 2, y: (bottom + top) / 2 };
  }

  /** Bring a point into the middle, near enough to tell it from its neighbours. */
  show(point, zoom = 6) {
    this.centre = { x: this.x[point], y: this.y[point] };
    this.zoom = Math.max(this.zoom, zoom);
  }

  /** The point nearest to a place on the screen, or -1 where none is within `reach` pixels. */
  nearest(x, y, reach = Infinity) {
    const scale = this.scale;
    const px = (x - this.width / 2) / scale + this.centre.x;
    const py = this.centre.y - (y - this.height / 2) / scale;
    let best = -1;
    let nearest = (reach / scale) ** 2;
    for (let point = 0; point < this.x.length; point += 1) {
      const far = (this.x[point] - px) ** 2 + (this.y[point] - py) ** 2;
      if (far < nearest) {
        nearest = far;
        best = point;
      }
    }
    return best;
  }
}
