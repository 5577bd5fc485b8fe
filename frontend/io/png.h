// Pictures as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusejit::io {

struct Color {
  std::uint8_t red, green, blue;
};

// An RGB canvas. Drawing outside of it is cut off.
class Picture {
 public:
  Picture(int width, int height, Color background);
  int width() const { return width_; }
  int height() const { return height_; }
  void set(int x, int y, Color color);
  void fill(int x, int y, int width, int height, Color color);
  // Letters of 5x7 cells, `scale` pixels a cell; capital letters are drawn for small ones, a blank for unknown signs.
  void text(int x, int y, std::string_view words, Color color, int scale = 1);
  std::span<const std::uint8_t> bytes() const { return rgb_; }

 private:
  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

// Pixels that `words` take.
int text_width(std::string_view words, int scale = 1);

// Whole or not at all. FileError.
void write_png(const std::string& path, const Picture& picture);

}  // namespace fusejit::io
