"""."""
import click
command = click.Command("init")
