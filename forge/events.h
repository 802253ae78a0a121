// The text of every kind of event, as Kineto prints it, with holes where the numbers go.
// Source of the form: pytorch/kineto libkineto/src/output_json.cpp and CuptiActivity.h, and traces
// of torch 2.4 to 2.9.
// Everything is in the pretty layout; a Stencil makes the other layouts from it.
#pragma once

#include <string>
#include <vector>

#include "forge/run.h"
#include "forge/text.h"

namespace culprit::forge {

// Whose events: the process, its one thread, its device and stream.
struct Place {
  int pid = 0;
  int tid = 0;
  int device = 0;
  int stream = 7;
};

// What an event says beyond name and time.
struct Detail {
  bool shapes = true;
  bool call_from = true;
  bool record_function = true;  // "Record function id", absent in old eras
  int rank = 0;
  int world = 1;
};

std::string frame_event(const Frame& frame, const Place& place, const Detail& detail);
// `collective`: of the launch under a record_param_comms, else null.
std::string op_event(const Op& op, const Collective* collective, const Place& place,
                     const Detail& detail);
std::string annotation_event(const std::string& name, const Place& place, const Detail& detail);
std::string device_annotation_event(const std::string& name, const Place& place);
// `linked`: the launch has an operator. `in_graph`: a node of a replayed graph, kNumber being its
// id.
std::string device_event(const Launch& launch, bool linked, bool in_graph, const Device& device,
                         const Place& place, const Detail& detail);
std::string api_event(Api api, bool linked, const Place& place);
std::string graph_launch_event(const Place& place);
std::string flow_start_event(const Place& place);
std::string flow_end_event(const Place& place);

// Everything before the first event and after the last, and the events that close a recording.
struct Header {
  std::string base;  // baseTimeNanoseconds; empty: the era has none
  bool shapes = true;
  bool stacks = true;
  int rank = 0;
  int world = 1;
};
std::string header_members(const Header& header, const Device& device);
std::vector<std::string> process_events(const std::string& process, const Place& place,
                                        bool old_era);
std::vector<std::string> closing_events();  // kTime, kDuration: the recording's

}  // namespace culprit::forge
