# SPDX-License-Identifier: BSD-3-Clause
"""Runs from Python beside the programs. Usage: runs.py PROGRAMS DOCS, with the module on PYTHONPATH."""

import gc
import contextlib
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy
import troupe

PROGRAMS, DOCS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
SMALL = {"d_model": 16, "heads": 2, "seq": 8, "layers": 4, "vocab": 11, "batch": 8, "microbatches": 4, "steps": 6}


def words(options):
    return ["--" + name.replace("_", "-") + ("" if value is True else f"={value}") for name, value in options.items()]


def program(name, options):
    """The results.json of a program, or its sentence about a mistake."""
    ran = subprocess.run([f"{PROGRAMS}/{name}", "--quiet", "--json=-", *words(options)], capture_output=True, text=True, check=False)
    if ran.returncode == 2:
        return ran.stderr.strip().removeprefix(f"{name}: ").removesuffix(f"; see {name} --help")
    return json.loads(ran.stdout)


def safetensors(path):
    """The tensors of a file, read by the format's definition."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        values = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(values[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items()}


class Runs(unittest.TestCase):
    def test_a_run_has_the_numbers_of_the_program(self):
        options = {**SMALL, "schedule": "1f1b", "stages": 2}
        run, printed = troupe.train(**options), program("train", options)["runs"][0]
        self.assertEqual(run.losses.tolist(), printed["loss"])
        self.assertEqual(run.loss_samples.tolist(), printed["loss_samples"])
        self.assertEqual(run.gradient_norms.tolist(), printed["gradient_norms"])
        self.assertEqual(run.learning_rates.tolist(), printed["learning_rates"])
        self.assertEqual(run.versions.tolist(), printed["weight_versions"])
        self.assertEqual(run.memory["rank"].tolist(), [0, 1])
        self.assertTrue((run.memory["peak"] <= sum(run.memory[use] for use in run.memory.dtype.names[2:])).all())

    def test_virtual_time_gives_the_same_results(self):
        options = {"schedules": "gpipe,1f1b,2bw", "stages": 4, "microbatches": 8, "steps": 2, "cost": "F=1,B=2"}
        result, printed = troupe.simulate(**options), program("simulate", options)
        self.assertEqual(result.results["runs"], printed["runs"])
        self.assertEqual([run.schedule for run in result], ["gpipe", "1f1b", "2bw"])
        for run, numbers in zip(result, printed["runs"]):
            rows = run.timeline
            self.assertEqual(rows["end"].max(), numbers["makespan"])
            forwards = rows[(rows["kind"] == "F") & (rows["rank"] == 3)]
            self.assertEqual(len(forwards), 16)
            self.assertAlmostEqual((forwards["end"] - forwards["start"]).sum(), 0.016)
            self.assertEqual(set(rows["kind"]), {"F", "B", "U"} if (rows["kind"] == "U").any() else {"F", "B"})
        self.assertEqual(result["2bw"].staleness["staleness_max"].tolist(), printed["runs"][2]["staleness"]["max"])

    def test_parameters_are_the_saved_ones_without_a_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weights.safetensors"
            result = troupe.train(**SMALL, stages=2, save=path)
            saved = safetensors(path)
        once, again = result.parameters, result.parameters
        self.assertEqual(set(once), set(saved))
        for name, values in saved.items():
            self.assertEqual(once[name].tobytes(), values.tobytes())
            self.assertEqual(once[name].shape, values.shape)
            self.assertEqual(once[name].__array_interface__["data"], again[name].__array_interface__["data"])
            with self.assertRaises(ValueError):
                once[name][...] = 0
        del result, again
        gc.collect()
        for name, values in saved.items(): # arrays keep what they show
            self.assertEqual(once[name].tobytes(), values.tobytes())

    def test_a_wrong_option_has_the_sentence_of_the_program(self):
        for options in ({"schedule": "no"}, {"stages": 0}, {"foo": 1}, {"model": "mlp", "heads": 3}, {"steps": "many"},
                        {"mesh": "pipe=2", "stages": 2}, {"resume": "/nowhere"}, {"data": "text:/nowhere"}, {"stages": 5, "layers": 1}):
            with self.subTest(options), self.assertRaises(ValueError) as wrong:
                troupe.train(**options)
            self.assertEqual(str(wrong.exception), program("train", options))

    def test_lists_flags_and_absent_values(self):
        with_list = troupe.simulate(schedules=["gpipe", "1f1b"], stages=2, print=None)
        self.assertEqual(len(with_list), 2)
        self.assertEqual(troupe.train(**SMALL, stages=1, tied=True).ending, "finished")
        self.assertIn("stages", troupe.options("train"))
        with self.assertRaisesRegex(ValueError, "command line"):
            troupe.train(help=True)
        with self.assertRaisesRegex(AttributeError, "the result has 2"):
            _ = with_list.losses
        with self.assertRaisesRegex(KeyError, "the runs are gpipe, 1f1b"):
            _ = with_list["zb-v"]

    def test_a_run_that_fails_gives_what_was_done(self):
        with self.assertRaises(troupe.RunError) as failed:
            troupe.train(**SMALL, stages=2, optimizer="sgd", lr=1e30)
        self.assertIn("not finite", str(failed.exception))
        self.assertEqual(failed.exception.result.ending, "failed")
        self.assertTrue(len(failed.exception.result.losses) > 0)

    def test_ctrl_c_ends_a_run_and_no_other(self):
        before = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(troupe.Interrupted) as ended:
            troupe.train(**{**SMALL, "steps": 1_000_000}, stages=2)
        timer.join()
        self.assertIsInstance(ended.exception, KeyboardInterrupt)
        self.assertEqual(ended.exception.result.ending, "interrupted")
        self.assertTrue(len(ended.exception.result.losses) > 0)
        self.assertEqual(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(troupe.train(**SMALL, stages=2).ending, "finished")

    def test_progress_is_told_and_its_exception_ends_the_run(self):
        told = []
        result = troupe.train(progress=lambda samples, loss: told.append((samples, loss)), **SMALL, stages=2)
        self.assertEqual(told, list(zip(result.loss_samples.tolist(), result.losses.tolist())))

        def stop(samples, loss):
            raise LookupError("enough")
        with self.assertRaisesRegex(LookupError, "enough"):
            troupe.train(progress=stop, **{**SMALL, "steps": 1_000_000}, stages=2)

    def test_one_run_at_a_time(self):
        def again(samples, loss):
            troupe.simulate(stages=2)
        with self.assertRaisesRegex(RuntimeError, "another run"):
            troupe.train(progress=again, **SMALL, stages=2)
        self.assertEqual(troupe.simulate(schedule="1f1b", stages=2).ending, "finished")

    def test_a_report_and_a_notebook_show_the_page(self):
        result = troupe.simulate(schedule="1f1b", stages=2)
        with tempfile.TemporaryDirectory() as folder:
            result.report(f"{folder}/page.html")
            with open(f"{folder}/page.html", encoding="utf-8") as page:
                text = page.read()
        self.assertIn('<script type="application/json"', text)
        self.assertNotIn("@page_data@", text)
        self.assertIn("srcdoc=", result._repr_html_())

    def test_notes_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tempfile.TemporaryDirectory() as folder:
                troupe.simulate(schedule="2bw", stages=2, export=f"{folder}/order.csv", quiet=False)
        self.assertTrue(any("is not for PyTorch" in str(one.message) for one in caught))

    def test_a_schedule_of_a_function_is_the_catalogs(self):
        stages, microbatches = 4, 8

        def gpipe(rank):
            yield from ((rank, "F", m) for m in range(microbatches))
            yield from (f"{rank}B{m}" for m in range(microbatches))

        def slot_of_1f1b(operation, stage, k):
            return stage + 2 * k if operation == "F" and k < stages - stage else \
                2 * k + stage if operation == "F" else 2 * stages - 1 - stage + 2 * k
        own = [troupe.Schedule("waves", gpipe, stages=stages),
               troupe.Schedule.by_slots("pairs", slot_of_1f1b, stages=stages, microbatches=microbatches)]
        options = {"stages": stages, "microbatches": microbatches, "steps": 3, "cost": "F=1,B=2"}
        result = troupe.simulate(schedules=[*own, "gpipe", "1f1b"], **options)
        for mine, theirs in (("file:waves", "gpipe"), (own[1], "1f1b")):
            for name in ("rank", "kind", "stage", "microbatch", "start", "end"):
                self.assertEqual(result[mine].timeline[name].tolist(), result[theirs].timeline[name].tolist())
        trained = troupe.compare(schedules=[*own, "gpipe"], **{**SMALL, "microbatches": 8}, stages=4)
        for run in trained.runs[:2]:
            self.assertEqual(run.losses.tolist(), trained["gpipe"].losses.tolist())

    def test_a_text_with_stashed_weights_is_pipedream(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/order.csv"
            theirs = troupe.simulate(schedule="pipedream", stages=2, steps=2, export=path)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        mine = troupe.simulate(schedule=troupe.Schedule("mine", text))
        self.assertEqual(mine.timeline["start"].tolist(), theirs.timeline["start"].tolist())
        self.assertEqual(mine.staleness.tolist(), theirs.staleness.tolist())

    def test_a_wrong_schedule_is_refused_in_a_sentence(self):
        wrong = troupe.Schedule("early", lambda rank: ["0B0", "0F0"], stages=1)
        with self.assertRaisesRegex(ValueError, "B0 of stage 0 comes before its forward"):
            troupe.simulate(schedule=wrong)
        with self.assertRaisesRegex(ValueError, "0X0"):
            troupe.simulate(schedule=troupe.Schedule("odd", "0X0\n"))
        other = troupe.Schedule("early", "0F0,0B0\n")
        with self.assertRaisesRegex(ValueError, "two schedules have the name early"):
            troupe.simulate(schedules=[wrong, other])
        for name in ("", "a,b", "a:b"):
            with self.assertRaisesRegex(ValueError, "no name of a schedule"):
                troupe.Schedule(name, "0F0,0B0")
        with self.assertRaisesRegex(ValueError, "needs stages="):
            troupe.Schedule("mine", lambda rank: [])

    def test_the_documents_programs_run(self):
        with open(f"{DOCS}/python.md", encoding="utf-8") as page:
            blocks = re.findall(r"```python\n(.*?)```", page.read(), re.DOTALL)
        self.assertEqual(len(blocks), 2)
        before, names, printed = os.getcwd(), {"troupe": troupe}, io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed):
                    for block in blocks:
                        exec(compile(block.replace("steps=50", "steps=2"), "docs/python.md", "exec"), names)
                self.assertEqual(sorted(os.listdir()), ["page.html", "waves.csv"])
                ran = subprocess.run([f"{PROGRAMS}/simulate", "--schedule", "file:waves.csv", "--quiet"], check=False)
                self.assertEqual(ran.returncode, 0)
            finally:
                os.chdir(before)
        self.assertIn("2bw", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
