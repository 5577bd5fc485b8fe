// The errors that fusejit throws. Every message is one clear sentence with the shapes in it, for example
//   conv2d: weight has 32 input channels, x has 64 (x: f32[8,64,56,56], w: f32[64,32,3,3])
// After any error the next call works and no buffer is lost.
#pragma once

#include <stdexcept>
#include <string>

namespace fusejit {

// Base of all errors; catch this to catch any of them.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller is wrong: a shape, dtype, axis, name or text that cannot be meant.
class UserError : public Error {
 public:
  using Error::Error;
};

// A text (.fj graph, kernel) that cannot be read; line and column count from 1.
class ParseError : public UserError {
 public:
  ParseError(int line, int column, const std::string& sentence)
      : UserError(std::to_string(line) + ":" + std::to_string(column) + ": error: " + sentence),
        line(line),
        column(column),
        sentence(sentence) {}
  int line;
  int column;
  std::string sentence;
};

// A file cannot be opened, read or written.
class FileError : public Error {
 public:
  using Error::Error;
};

// Correct, but not possible yet; the message says what would work.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

// A device or a library under us failed; the message holds the call, its code and its log.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// A bug in fusejit; the message carries the text of the graph or kernel concerned.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace fusejit
