// node: offers this machine to runs that are started elsewhere with --nodes
// SPDX-License-Identifier: BSD-3-Clause

#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_server.hpp"
#include "experiments/options/help.hpp"
#include "experiments/options/option_catalog.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/node_part.hpp"
#include "experiments/session/node_status.hpp"
#include "experiments/session/out_of_memory.hpp"
#include "kernels/version.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

using namespace troupe;

namespace {

struct node_command {
  std::string listen = "127.0.0.1:4242";
  std::string status;
  int threads = 0;
  std::string device = "cuda";
  int most_ranks = 0;
  std::int64_t most_memory = 0; // MiB
  std::string folder = ".";
  int queue = 8;
  std::string tls;
  bool insecure = false;
};

void add_options(option_list& to, node_command& command) {
  to.add_option("--listen", command.listen,
                "Address to listen at, HOST:PORT. Port 0: any free port.");
  to.add_option("--status", command.status,
                "Address of a node whose status is printed. No node is started.");
  to.add_option("--threads", command.threads,
                "Threads of the CPU. Value 0: the number of its cores.");
  to.add_option("--device", command.device,
                "Devices of this machine that runs may use.\n"
                "cpu\tthe CPU\n"
                "cuda\tthe CPU and all GPUs\n"
                "cuda:0,cuda:1\tthe CPU and the listed GPUs");
  to.add_option("--max-ranks", command.most_ranks,
                "Most ranks that a run may place on this node. Value 0: any number.");
  to.add_option("--max-memory", command.most_memory,
                "MiB of tensors that a run may allocate on this node, CPU and GPUs "
                "together. Value 0: the free memory.");
  to.add_option("--folder", command.folder,
                "Folder from which runs may read data sets, and into which runs write "
                "no files. Default: the current folder.");
  to.add_option("--queue", command.queue,
                "Most runs that may wait while another run lasts. Value 0: none.");
  to.add_option("--tls", command.tls, help_of("--tls"));
  to.add_flag("--insecure", command.insecure, help_of("--insecure"));
}

int complain(const std::string& why, int exit_code) {
  std::cerr << "node: " << why << '\n';
  return exit_code;
}

/// One sentence about a number out of range; empty if there is none.
std::string validation_error(const node_command& c) {
  if (c.threads < 0 || c.threads > 1024)
    return "--threads " + std::to_string(c.threads)
           + ": give 1 to 1,024, or 0 for the machine's cores";
  if (c.most_ranks < 0 || c.most_memory < 0 || c.most_memory > (std::int64_t{1} << 40))
    return "--max-ranks or --max-memory is out of range: give 0 for no limit, or more";
  if (c.queue < 0 || c.queue > 1000)
    return "--queue " + std::to_string(c.queue) + ": give 0 to 1,000 runs";
  if (!std::filesystem::is_directory(c.folder))
    return "--folder " + c.folder + " is no folder: name a folder";
  return {};
}

/// One sentence about an option that --status leaves without effect; empty if there is
/// none.
std::string unused_with_status(const CLI::App& app) {
  for (const auto* const option : app.get_options()) {
    const auto name = option->get_name();
    if (option->count() > 0 && name != "--status" && name != "--tls"
        && name != "--insecure")
      return name + " has no effect with --status, which starts no node: leave " + name
             + " or --status out";
  }
  return {};
}

int print_status(const node_address& where, node_links& links) {
  const auto status = status_of(where, links, std::chrono::seconds{5});
  if (!status)
    return complain(status.error(), 1);
  std::cout << "node " << to_string(where) << " (troupe " << status->version << ") "
            << status->doing << "; " << status->waiting
            << (status->waiting == 1 ? " run waits\n" : " runs wait\n");
  return 0;
}

using gpu_numbers = std::optional<std::vector<int>>;

/// The GPUs that runs may use; absent: all. The error is one sentence with the allowed
/// values.
tl::expected<gpu_numbers, std::string> gpus_of(const std::string& device) {
  if (device == "cuda")
    return gpu_numbers{};
  const auto listed = parse_devices(device, count_of_gpus());
  if (!listed)
    return tl::unexpected{listed.error()};
  if (const auto why = absence_of_gpus(); !listed->empty() && !why.empty())
    return tl::unexpected{"--device " + device + ": " + why};
  std::vector<int> result;
  for (const auto& listed_processor : *listed)
    if (listed_processor.is_gpu())
      result.push_back(listed_processor.gpu);
  return gpu_numbers{std::move(result)};
}

/// One line with the addresses of a host's name at which runs reach this node, if there
/// are several. Further lines name the addresses at which the node does not listen.
std::string address_notes(const listening_sockets& listens) {
  std::string result;
  if (listens.addresses().size() > 1)
    for (const auto& ip : listens.addresses())
      result += (result.empty() ? "node: the host name has addresses " : ", ") + ip;
  result += result.empty() ? "" : "\n";
  for (const auto& why : listens.absent())
    result += "node: not listening at " + why + "\n";
  return result;
}

int serve(const node_command& c, const node_address& address, node_links& links) {
  auto gpus = gpus_of(c.device);
  if (!gpus)
    return complain(gpus.error(), 2);
  auto listens = listen_at(address);
  if (!listens)
    return complain(listens.error(), 1);
  const node_limits limits{
    .threads = c.threads > 0
                 ? c.threads
                 : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)),
    .most_ranks = c.most_ranks,
    .most_memory = c.most_memory << 20,
    .gpus = std::move(*gpus),
    .folder = c.folder};
  std::filesystem::current_path(c.folder);
  const worker_services means{.plan =
                                [limits](const mail::prepare& facts) {
                                  auto local_limits = limits;
                                  local_limits.folder = ".";
                                  return plan_of_part(facts, local_limits);
                                },
                              .connections = &links};
  const auto named = address_notes(*listens);
  node_server server{
    std::move(*listens),
    [&](socket_descriptor s) { return links.from(std::move(s)); },
    means,
    {.version = version(),
     .queue = c.queue,
     .clients = node_server::settings{}.clients + static_cast<std::size_t>(c.queue)}};
  std::cout << "node: listening at "
            << to_string(node_address{address.host, server.port()}) << " with "
            << limits.threads << (limits.threads == 1 ? " thread\n" : " threads\n")
            << named << std::flush;
  server.serve({interruption(), announced_end()}, [](const std::string& sentence) {
    std::cout << "node: " << sentence << std::endl;
  });
  return 0;
}

int run(const node_command& c, const CLI::App& app) {
  if (auto error = validation_error(c); !error.empty())
    return complain(error, 2);
  if (!c.status.empty())
    if (auto error = unused_with_status(app); !error.empty())
      return complain(error, 2);
  const auto where = parse_address(c.status.empty() ? c.listen : c.status);
  if (!where)
    return complain(where.error(), 2);
  std::optional<tls_files> files;
  if (!c.tls.empty()) {
    auto named = parse_tls(c.tls);
    if (!named)
      return complain(named.error(), 2);
    files = std::move(*named);
  }
  if (auto error = plaintext_error(*where, files.has_value(), c.insecure);
      !error.empty())
    return complain(error, 2);
  auto links = node_links::from(files);
  if (!links)
    return complain(links.error(), 2);
  return c.status.empty() ? serve(c, *where, **links) : print_status(*where, **links);
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"A node, which executes ranks of runs that other programs start with "
               "--nodes. Runs execute one after another, until the node is ended.",
               "node"};
  app.option_defaults()->always_capture_default();
  add_help(app);
  node_command c;
  option_list list{app};
  add_options(list, c);
  try {
    app.parse(argc, argv);
    outlive_failed_writes();
    end_when_out_of_memory("node");
    const int exit_code = run(c, app);
    if (!is_at_work())
      return exit_code;
    std::cout.flush(); // threads that never end use objects that an exit would destroy
    std::_Exit(std::max(exit_code, 1));
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return complain(sentence_of(app, error) + "; see node --help", 2);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}
