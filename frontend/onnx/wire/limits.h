// What an ONNX file may hold, counted before anything is made of it: two bytes of a file can ask for a message of
// hundreds, so that a file of megabytes could take gigabytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fusejit::onnx::wire {

// UserError, which begins with `source`, for bytes that are no model in the wire format of protocol buffers, or for one
// with more nodes, initializers or fields than we read. Needs no memory, and no more stack for deeper messages.
void check_limits(std::span<const std::byte> bytes, const std::string& source);

}  // namespace fusejit::onnx::wire
